/* SPDX-License-Identifier: MIT */
/* Shows plans, by the public functions that an application has. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "shapes.h"
#include "tool.h"

static const char usage[] =
    "Usage: hgemm plan [options] shape...\n"
    "\n"
    "Shows for each shape which kernel runs it, into how many parts it cuts k, what it copies first, the time\n"
    "that the cost model expects, and the plan's text, which hgemm_plan_from_text reads.\n"
    "\n" SHAPES_HELP "  --tuning FILE       goes before the cost model; default the environment's HGEMM_TUNING\n"
    "  --kernel NAME       the plan of that kernel instead of the library's choice\n"
    "  --device NAME       cuda, cuda:N or t4emu; default is the environment's HGEMM_DEVICE, else the first\n"
    "                      GPU, else t4emu\n"
    "\n"
    "Exit status: 0; 1 on a failure; 2 where the arguments make no sense.\n";

static void show(hgemm_handle_t handle, const problem_class_t *problem, int kernel)
{
    hgemm_desc_t desc;
    hgemm_weights_t weights;
    hgemm_plan_t plan;
    hgemm_plan_info_t info;
    hgemm_kernel_info_t row;
    double ratio;
    char text[HGEMM_PLAN_TEXT], name[CLASS_TEXT];
    class_to_text(problem, name);
    const char *fault = class_example(problem, &desc, &weights);
    if (fault)
        tool_fail("%s: %s", name, fault);
    desc.kernel = kernel;
    tool_must(handle, hgemm_plan_create(&plan, handle, &desc));
    tool_must(NULL, hgemm_plan_get_info(plan, &info));
    tool_must(NULL, hgemm_get_kernel_info(info.kernel, &row));
    tool_must(NULL, hgemm_plan_get_text(plan, text));
    printf("%s\n", name);
    printf("    kernel      %s, tiles of %d x %d x %d, %d threads\n", row.name, row.block_m, row.block_n, row.block_k,
           row.threads);
    printf("    tiles       %" PRId64, info.tiles);
    if (info.splits > 1)
        printf(", %" PRId64 " of them in %d parts of k", info.split_tiles, info.splits);
    printf("\n    copies      %s\n",
           info.copies_a ? (info.copies_b ? "A and B" : "A") : (info.copies_b ? "B" : "none"));
    printf("    workspace   %zu bytes\n", info.workspace_bytes);
    if (info.seconds > 0)
        printf("    expected    %.2f us by the cost model, launch not counted\n", info.seconds * 1e6);
    tool_must(handle, hgemm_get_cublas_ratio(handle, &desc, &ratio));
    if (info.is_tuned && ratio > 0)
        printf("    cuBLAS      takes %.3f times as long, by the tuning file\n", ratio);
    printf("    chosen by   %s\n", kernel ? "its name" : info.is_tuned ? "the tuning file" : "the cost model");
    printf("    text        %s\n", text);
    hgemm_plan_destroy(plan);
}

int tool_plan(int argc, char **argv)
{
    enum { SHAPES = 1, LAYOUT, ACCUMULATE, TRANS, BATCH, WEIGHTS, TUNING, KERNEL, DEVICE, HELP };
    static const struct option known[] = {
        {"shapes", 1, NULL, SHAPES}, {"layout", 1, NULL, LAYOUT}, {"accumulate", 1, NULL, ACCUMULATE},
        {"trans", 1, NULL, TRANS},   {"batch", 1, NULL, BATCH},   {"weights", 1, NULL, WEIGHTS},
        {"tuning", 1, NULL, TUNING}, {"kernel", 1, NULL, KERNEL}, {"device", 1, NULL, DEVICE},
        {"help", 0, NULL, HELP},     {NULL, 0, NULL, 0}};
    shapes_options_t options = {0};
    shapes_t shapes = {0};
    const char *device = NULL, *tuning = NULL, *file = NULL;
    int kernel = HGEMM_KERNEL_AUTO;
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;)
        switch (option) {
        case SHAPES: file = optarg; break;
        case LAYOUT: shapes_take_layout(&options, optarg); break;
        case ACCUMULATE: shapes_take_accumulate(&options, optarg); break;
        case TRANS: shapes_take_trans(&options, optarg); break;
        case BATCH: shapes_take_batch(&options, optarg); break;
        case WEIGHTS: shapes_take_weights(&options, optarg); break;
        case TUNING: tuning = optarg; break;
        case KERNEL:
            kernel = hgemm_find_kernel(optarg);
            if (!kernel)
                tool_refuse("no kernel is called %s", optarg);
            break;
        case DEVICE: device = optarg; break;
        case HELP: fputs(usage, stdout); return 0;
        default: fputs("Try hgemm plan --help.\n", stderr); return 2;
        }
    if (file)
        shapes_add_file(&shapes, &options, file);
    while (optind < argc)
        shapes_add_argument(&shapes, &options, argv[optind++]);
    if (shapes.count == 0)
        tool_refuse("no shape is given; try hgemm plan --help");
    hgemm_handle_t handle = tool_open(device);
    hgemm_device_info_t info;
    tool_must(handle, hgemm_get_device_info(handle, &info));
    if (tuning)
        tool_must(handle, hgemm_load_tuning(handle, tuning));
    printf("device %s\n", info.name);
    for (int i = 0; i < shapes.count; i++)
        show(handle, &shapes.of[i], kernel);
    tool_must(NULL, hgemm_destroy(handle));
    free(shapes.of);
    return 0;
}
