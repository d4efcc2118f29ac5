# SPDX-License-Identifier: MIT

# Those of the nodes that need themselves by way of others, or a node that does. arrows_<node> has what a node needs.
function(left_in_circle out)
    set(left ${ARGN})
    list(REMOVE_DUPLICATES left)
    list(LENGTH left count)
    set(before -1)
    while(NOT count EQUAL before) # takes away each node that needs nothing that is left
        set(still "")
        foreach(node IN LISTS left)
            foreach(needed IN LISTS arrows_${node})
                if(needed IN_LIST left)
                    list(APPEND still ${node})
                    break()
                endif()
            endforeach()
        endforeach()
        set(before ${count})
        set(left ${still})
        list(LENGTH left count)
    endwhile()
    set(${out} "${left}" PARENT_SCOPE)
endfunction()
