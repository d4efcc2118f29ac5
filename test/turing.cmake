# SPDX-License-Identifier: MIT
#
# The emulator's own tests.

include(turing_exec.cmake)
