/* SPDX-License-Identifier: MIT */
/* What a call launches, on a device that only records: the kernel, its arguments, how often it is loaded and chosen. */
#include "fixture.h"
#include "problem_of.h"
#include "table/tile_facts.h"

#include <string.h>

/* Element (i, j) of a stored matrix, as the caller describes it. */
static double element(const uint16_t *data, hgemm_layout_t layout, int transposed, int64_t i, int64_t j, int64_t ld)
{
    int64_t row = transposed ? j : i, column = transposed ? i : j;
    return hgemm_half_to_float(data[layout == HGEMM_ROW_MAJOR ? row * ld + column : row + column * ld]);
}

/* For all layouts, transposes and batches the arguments that a kernel gets describe the product
 * that the caller described; and the launch is the table's. */
static void launches_describe_the_product(void **state)
{
    (void)state;
    for (int bits = 0; bits < 16; bits++)
        for (int kernel = 0; kernel <= hgemm_kernel_count(); kernel++) {
            hgemm_desc_t desc = small();
            hgemm_kernel_info_t info;
            desc.layout = (hgemm_layout_t)(bits & 1);
            desc.op_a = (hgemm_op_t)(bits >> 1 & 1), desc.op_b = (hgemm_op_t)(bits >> 2 & 1);
            desc.batch = bits & 8 ? 3 : 1;
            desc.m = 16, desc.n = 8, desc.k = 32;
            desc.lda = 40, desc.ldb = 48, desc.ldc = 17, desc.ldd = 19;
            desc.stride_a = 640, desc.stride_b = 8, desc.stride_c = 3, desc.stride_d = 400;
            desc.alpha = 0.5f, desc.beta = -2;
            desc.kernel = kernel;
            if (kernel) {
                assert_status(hgemm_get_kernel_info(kernel, &info), HGEMM_STATUS_SUCCESS);
                desc.accumulate = info.accumulate;
            }
            int launches = fake.launches;
            hgemm_status_t status = hgemm_run_desc(&handle, &desc);
            if (status == HGEMM_STATUS_NOT_SUPPORTED && kernel &&
                (info.ops == HGEMM_OPS_NN || !kernel_table[kernel].limits[LIMIT_align]))
                continue;
            assert_status(status, HGEMM_STATUS_SUCCESS);
            assert_int_equal(fake.launches, launches + 1);
            if (kernel) {
                int64_t m = desc.layout == HGEMM_ROW_MAJOR ? desc.m : desc.n;
                int64_t n = desc.layout == HGEMM_ROW_MAJOR ? desc.n : desc.m;
                assert_int_equal(strncmp(fake.image->symbol, info.name, strlen(info.name)), 0);
                assert_int_equal(fake.launch.threads, info.threads);
                assert_int_equal(fake.launch.shared_bytes, info.shared_bytes);
                const int64_t tiles = (m + info.block_m - 1) / info.block_m * ((n + info.block_n - 1) / info.block_n);
                const int64_t each = kernel_table[kernel].tiles; /* of a block, of all matrices; 0: one */
                assert_int_equal(fake.launch.grid[0], each ? (tiles * desc.batch + each - 1) / each : tiles);
                assert_int_equal(fake.launch.grid[1], each ? 1 : desc.batch);
            }
            assert_int_equal(fake.matrices, desc.batch);
            fake.matrices = 0;
            assert_int_equal(fake.launch.grid[2], 1);
            assert_int_equal(fake.launch.args_size, sizeof(kernel_args_t));
            for (int64_t y = 0; y < desc.batch; y++)
                for (int64_t i = 0; i < desc.m; i++)
                    for (int64_t j = 0; j < desc.n; j++) {
                        double sum = 0;
                        for (int64_t l = 0; l < desc.k; l++)
                            sum +=
                                element(a + y * desc.stride_a, desc.layout, desc.op_a == HGEMM_OP_T, i, l, desc.lda) *
                                element(b + y * desc.stride_b, desc.layout, desc.op_b == HGEMM_OP_T, l, j, desc.ldb);
                        double want = 0.5 * sum - 2 * element(c + y * desc.stride_c, desc.layout, 0, i, j, desc.ldc);
                        double got = element(d + y * desc.stride_d, desc.layout, 0, i, j, desc.ldd);
                        if (got != want)
                            fail_msg("layout %d ops %d%d kernel %d (%d,%d): %g, want %g", desc.layout, desc.op_a,
                                     desc.op_b, kernel, (int)i, (int)j, got, want);
                    }
        }
}

/* The x16 variant runs where every chunk of A and B is 16-byte aligned, the x8 one where each half
 * of one is 8-byte aligned, the far one where a tile spans 2^32 bytes. */
static void operands_choose_the_variant(void **state)
{
    (void)state;
    enum { FAR = 1 << 25 }; /* its tiles have 64 lines: 2^32 bytes / (2 * 64) */
    const struct {
        const char *symbol;
        int64_t m, n, k, lda, ldb, batch, stride_a, stride_b;
        int offset_a, offset_b;
    } rows[] = {
        {"k5_64x64_nn", 8, 16, 24, 24, 16, 1, 0, 0, 0, 0},
        {"k5_64x64_nn", 5, 16, 24, 24, 16, 1, 0, 0, 0, 0},
        {"k5_64x64_nn", 8, 16, 24, 24, 16, 1, 1, 1, 0, 0},
        {"k5_64x64_nn", 8, 16, 24, 24, 16, 2, 8, -16, 0, 0},
        {"k5_64x64_nn", 8, 16, 24, 24, 16, 1, 0, 0, 8, 16},
        {"k5_64x64_nn", 8, 16, 24, FAR - 8, 16, 1, 0, 0, 0, 0},
        {"k5_64x64_nn_any", 8, 15, 24, 24, 16, 1, 0, 0, 0, 0},
        {"k5_64x64_nn_any", 8, 16, 23, 24, 16, 1, 0, 0, 0, 0},
        {"k5_64x64_nn_any", 8, 16, 24, 25, 16, 1, 0, 0, 0, 0},
        {"k5_64x64_nn_any", 8, 16, 24, 24, 17, 1, 0, 0, 0, 0},
        {"k5_64x64_nn_any", 8, 16, 24, 24, 16, 1, 0, 0, 1, 0},
        {"k5_64x64_nn_x8", 8, 16, 24, 24, 16, 1, 0, 0, 0, 4},
        {"k5_64x64_nn_x8", 8, 16, 24, 24, 16, 2, 4, 8, 0, 0},
        {"k5_64x64_nn_x8", 8, 16, 24, 24, 16, 2, 8, 12, 0, 0},
        {"k5_64x64_nn_x8", 8, 12, 20, 20, 12, 1, 0, 0, 0, 0},
        {"k5_64x64_nn_any", 8, 14, 24, 24, 16, 1, 0, 0, 0, 0},
        {"k5_64x64_nn_any", 8, 16, 24, 26, 16, 1, 0, 0, 0, 0},
        {"k5_64x64_nn_any", 8, 16, 24, 24, 16, 1, 0, 0, 2, 0},
        {"k5_64x64_nn_any", 8, 16, 24, 24, 16, 2, 4, 6, 0, 0},
        {"k5_64x64_nn_any", 8, 16, 24, FAR - 1, 16, 1, 0, 0, 0, 0},
        {"k5_64x64_nn_far", 8, 16, 24, FAR, 16, 1, 0, 0, 0, 0},
        {"k5_64x64_nn_far", 8, 16, 24, 24, FAR + 1, 1, 0, 0, 0, 0},
        {"k5_64x64_nn", 8, 16, 0, FAR + 1, 17, 1, 0, 0, 1, 1}, /* nothing of A and B is read */
    };
    fake.compute = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hgemm_desc_t desc = small();
        desc.kernel = KERNEL_k5_64x64;
        desc.m = rows[i].m, desc.n = rows[i].n, desc.k = rows[i].k;
        desc.lda = rows[i].lda, desc.ldb = rows[i].ldb, desc.ldd = 17;
        desc.batch = rows[i].batch, desc.stride_d = 1024;
        desc.stride_a = rows[i].stride_a, desc.stride_b = rows[i].stride_b;
        desc.a = (uint16_t *)elsewhere(0) + rows[i].offset_a; /* as far apart as they reach */
        desc.b = (uint16_t *)elsewhere(UINT64_C(1) << 50) + rows[i].offset_b;
        assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
        if (strcmp(fake.image->symbol, rows[i].symbol) != 0)
            fail_msg("row %d: %s, want %s", (int)i, fake.image->symbol, rows[i].symbol);
    }
}

static void large_batches_take_several_launches(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    desc.kernel = KERNEL_k5_64x64, desc.batch = 3 * 65535 + 7;
    desc.a = elsewhere(0), desc.b = elsewhere(UINT64_C(1) << 50), desc.c = elsewhere(UINT64_C(2) << 50);
    desc.stride_a = 5, desc.stride_b = -16, desc.stride_c = 0, desc.stride_d = 128;
    fake.compute = 0;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.launches, 4);
    assert_int_equal(fake.matrices, desc.batch);
    assert_int_equal(fake.launch.grid[1], 7);
    /* Addresses far outside the arrays: integers, because C knows no such pointers. */
    assert_int_equal((uintptr_t)fake.args.a, (uintptr_t)desc.a + UINT64_C(2) * 3 * 65535 * 5);
    assert_int_equal((uintptr_t)fake.args.b, (uintptr_t)desc.b - UINT64_C(2) * 3 * 65535 * 16);
    assert_ptr_equal(fake.args.c, desc.c);
    assert_int_equal((uintptr_t)fake.args.d, (uintptr_t)d + UINT64_C(2) * 3 * 65535 * 128);
    fake_device_init(&fake); /* an error ends it at once */
    fake.launch_status = HGEMM_STATUS_DEVICE_ERROR;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_DEVICE_ERROR);
    assert_int_equal(fake.launches, 1);
}

/* Strides of packed weights count bytes, in each launch of a batch. */
static void large_batches_of_packed_weights_count_bytes(void **state)
{
    (void)state;
    hgemm_weights_t weights;
    hgemm_weights_init(&weights);
    weights.n = 8, weights.k = 32, weights.code = HGEMM_CODE_INT4, weights.group = 32,
    weights.type_scale = HGEMM_TYPE_F16;
    size_t bytes = 0;
    assert_status(hgemm_weights_bytes(&weights, &bytes), HGEMM_STATUS_SUCCESS);
    hgemm_desc_t desc = small();
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.weights = &weights, desc.op_b = HGEMM_OP_T, desc.ldb = 0;
    desc.m = 8, desc.n = weights.n, desc.k = weights.k, desc.lda = 32, desc.ldc = desc.ldd = 8;
    desc.batch = 65535 + 2;
    desc.a = elsewhere(0), desc.b = elsewhere(UINT64_C(1) << 50), desc.c = elsewhere(UINT64_C(2) << 50);
    desc.d = elsewhere(UINT64_C(3) << 50);
    desc.stride_a = 256, desc.stride_b = (int64_t)bytes + 128, desc.stride_c = 0, desc.stride_d = 64;
    fake.compute = 0;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.launches, 2);
    assert_int_equal(fake.launch.grid[1], 2);
    assert_int_equal((uintptr_t)fake.args.a, (uintptr_t)desc.a + UINT64_C(2) * 65535 * 256);
    assert_int_equal((uintptr_t)fake.args.b, (uintptr_t)desc.b + UINT64_C(65535) * (bytes + 128));
}

/* Warps that have tiles of all matrices count them in 31 bits: a launch has as many whole matrices. */
static void tiles_of_all_matrices_fit_a_grid(void **state)
{
    (void)state;
    enum { TILES = 1 << 10, MOST = INT32_MAX / TILES };
    hgemm_desc_t desc = small();
    desc.kernel = KERNEL_tiny_16x32, desc.batch = MOST + 5;
    desc.m = 16 * TILES, desc.n = 32, desc.k = 8, desc.lda = 8, desc.ldb = desc.ldc = desc.ldd = 32;
    desc.a = elsewhere(0), desc.b = elsewhere(UINT64_C(1) << 50), desc.c = elsewhere(UINT64_C(2) << 50);
    desc.d = elsewhere(UINT64_C(3) << 50);
    desc.stride_a = 5, desc.stride_b = 3, desc.stride_c = 0, desc.stride_d = 32 * desc.m;
    fake.compute = 0;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.launches, 2);
    assert_int_equal(fake.matrices, desc.batch);
    assert_int_equal(fake.args.groups, 5);
    assert_int_equal(fake.launch.grid[0], 5 * TILES / 4);
    assert_int_equal((uintptr_t)fake.args.a, (uintptr_t)desc.a + UINT64_C(2) * MOST * 5);
    assert_int_equal((uintptr_t)fake.args.d, (uintptr_t)desc.d + UINT64_C(2) * MOST * 32 * (uint64_t)desc.m);
}

/* Where D has a column or two, a block of a thin kernel has as many tiles of 512 lines as fill the T4's 160 places, 4
 * or 2 at most, and shared memory for their sums. One column of many k's is streamed by 120 lines a block. */
static void thin_blocks_have_several_tiles(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n, k, batch, blocks, sums;
    } rows[] = {
        {512 * 160, 1, 1, 1, 160, 512},       /* a tile each */
        {512 * 160 + 1, 1, 1, 1, 81, 1024},   /* 161 tiles, two each */
        {1000000, 1, 128, 1, 489, 4 * 512},   /* four rounds */
        {4000000, 1, 1, 1, 1954, 4 * 512},    /* thirteen */
        {1000000, 2, 1, 1, 977, 2 * 2 * 512}, /* seven */
        {1000000, 3, 1, 1, 1954, 3 * 512},    /* for three columns a tile has enough */
        {1100, 1, 1, 1000, 1, 3 * 512},       /* no more than a matrix has */
        {50257, 1, 129, 1, 419, 8 * 128},     /* streamed */
        {50257, 2, 129, 1, 99, 2 * 512},      /* two columns are not */
        {7, 1, 129, 1, 1, 512},               /* nor are so few lines */
    };
    fake.compute = 0;
    for (int wide = 0; wide < 2; wide++)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            hgemm_desc_t desc = small();
            desc.kernel = wide ? KERNEL_thin_8x512 : KERNEL_thin_512x8;
            desc.accumulate = HGEMM_ACCUMULATE_F32;
            desc.m = wide ? rows[i].n : rows[i].m, desc.n = wide ? rows[i].m : rows[i].n, desc.k = rows[i].k;
            desc.op_a = HGEMM_OP_T, desc.op_b = HGEMM_OP_N; /* memory runs along m and n */
            desc.lda = desc.m, desc.ldb = desc.ldc = desc.ldd = desc.n;
            desc.batch = rows[i].batch;
            desc.stride_a = desc.stride_b = desc.stride_c = desc.stride_d = rows[i].m * rows[i].n;
            desc.a = elsewhere(0), desc.b = elsewhere(UINT64_C(1) << 50), desc.d = elsewhere(UINT64_C(2) << 50);
            desc.beta = 0;
            assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
            assert_int_equal(fake.launch.grid[0], rows[i].blocks);
            assert_int_equal(fake.launch.shared_bytes, rows[i].sums * 4);
        }
}

/* Where memory runs along k and rows are aligned, up to 4 columns of 24 k's or more are swept, by 128 lines a block; a
 * kernel is told so, for alignment is the batch's, and the last launch of a large one may have a single matrix. */
static void thin_blocks_sweep(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n, k, ld, batch, stride, blocks, sums, is_swept;
    } rows[] = {
        {300000, 1, 64, 64, 1, 0, 2344, 128, 1},      {300000, 4, 64, 72, 1, 0, 2344, 4 * 128, 1},
        {300, 3, 24, 24, 2, 7200, 3, 3 * 128, 1},     {300000, 5, 64, 64, 1, 0, 586, 5 * 512, 0}, /* columns */
        {300000, 1, 16, 16, 1, 0, 147, 4 * 512, 0},                                               /* k's */
        {300000, 1, 63, 64, 1, 0, 147, 4 * 512, 0},   /* a chunk is not whole */
        {300000, 1, 64, 68, 1, 0, 147, 4 * 512, 0},   /* rows are not aligned */
        {300, 1, 24, 24, 1, 7201, 3, 128, 1},         /* nor are matrices, of which there is one */
        {300, 1, 24, 24, 65536, 7201, 1, 1 * 512, 0}, /* of which a launch has one, too */
    };
    fake.compute = 0;
    for (int wide = 0; wide < 2; wide++)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            hgemm_desc_t desc = small();
            desc.kernel = wide ? KERNEL_thin_8x512 : KERNEL_thin_512x8;
            desc.accumulate = HGEMM_ACCUMULATE_F32;
            desc.m = wide ? rows[i].n : rows[i].m, desc.n = wide ? rows[i].m : rows[i].n, desc.k = rows[i].k;
            desc.op_a = HGEMM_OP_N, desc.op_b = HGEMM_OP_T; /* memory runs along k */
            desc.lda = desc.ldb = rows[i].ld, desc.ldc = desc.ldd = desc.n;
            desc.batch = rows[i].batch;
            desc.stride_a = desc.stride_b = rows[i].stride, desc.stride_c = desc.stride_d = rows[i].m * rows[i].n;
            desc.a = elsewhere(0), desc.b = elsewhere(UINT64_C(1) << 50), desc.d = elsewhere(UINT64_C(2) << 50);
            desc.beta = 0;
            assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
            assert_int_equal(fake.launch.grid[0], rows[i].blocks);
            assert_int_equal(fake.launch.shared_bytes, rows[i].sums * 4);
            assert_int_equal(fake.args.indirect & HGEMM_SWEPT, rows[i].is_swept ? HGEMM_SWEPT : 0);
        }
}

/* Scales that are found take a launch, and another one for outliers; where samples are worth it two more, which are for
 * what these missed. */
static void scales_take_launches(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.type_a = desc.type_b = HGEMM_TYPE_BF16, desc.type_c = desc.type_d = HGEMM_TYPE_F32;
    desc.m = desc.n = 256, desc.k = 1024;
    desc.op_b = HGEMM_OP_T;
    desc.lda = desc.ldb = 1024, desc.ldc = desc.ldd = 256;
    desc.a = elsewhere(0), desc.b = elsewhere(UINT64_C(1) << 50), desc.c = desc.d = elsewhere(UINT64_C(2) << 50);
    desc.beta = 0;
    handle.workspace = elsewhere(UINT64_C(3) << 50), handle.workspace_bytes = 32 << 20;
    fake.compute = 0;
    const struct {
        int64_t k;
        float beta, scale_a, scale_b;
        unsigned flags;
        int is_newer, launches;
    } rows[] = {
        {1024, 0, 0, 0, 0, 0, 5},                          /* A and B have 1 MiB */
        {1024, 0, 0, 0, 0, 1, 3},                          /* newer GPUs read so many as fast as a sample */
        {1016, 0, 0, 0, 0, 0, 3},                          /* a little less */
        {12288, 0, 0, 0, 0, 1, 5},                         /* 12 MiB */
        {12280, 0, 0, 0, 0, 1, 3},                         /* a little less */
        {1024, 1, 0, 0, 0, 0, 2},                          /* D is C */
        {1024, 0, 1, 1, 0, 0, 1},                          /* nothing is to be found */
        {1024, 0, 1, 0, 0, 0, 3},                          /* half a MiB */
        {2048, 0, 1, 0, 0, 0, 5},                          /* of B alone */
        {2048, 0, 0, 1, 0, 0, 5},                          /* of A alone */
        {2048, 0, 1, 0, HGEMM_FLAG_BATCH_INVARIANT, 0, 2}, /* one row must not tell others of its NaN */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int before = fake.launches;
        desc.k = desc.lda = desc.ldb = rows[i].k, desc.beta = rows[i].beta, desc.flags = rows[i].flags;
        desc.scale_a = rows[i].scale_a, desc.scale_b = rows[i].scale_b;
        handle.machine.is_newer = rows[i].is_newer;
        assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
        if (fake.launches - before - (desc.k % 8 != 0) !=
            rows[i].launches) /* rows that are not aligned may be copied */
            fail_msg("row %d: %d launches, want %d", (int)i, fake.launches - before, rows[i].launches);
    }
}

/* FP32 units keep sums of many k's in shared memory: those of a whole tile, too, beside tiles that are cut in short
 * parts. */
static void whole_tiles_keep_their_sums(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    desc.kernel = KERNEL_fma_64x64, desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.type_a = desc.type_b = desc.type_c = desc.type_d = HGEMM_TYPE_F32;
    desc.m = desc.n = 256, desc.k = 2048;
    desc.op_b = HGEMM_OP_T;
    desc.lda = desc.ldb = 2048, desc.ldc = desc.ldd = 256;
    desc.a = elsewhere(0), desc.b = elsewhere(UINT64_C(1) << 50), desc.c = desc.d = elsewhere(UINT64_C(2) << 50);
    desc.beta = 0;
    handle.workspace = elsewhere(UINT64_C(3) << 50), handle.workspace_bytes = 32 << 20;
    fake.compute = 0;
    const struct {
        int64_t whole_tiles, k_split;
        int splits, keeps;
    } rows[] = {{16, 2048, 1, 1}, {0, 512, 4, 0}, {0, 1024, 2, 0}, {0, 1040, 2, 1}, {12, 512, 4, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        plan_t plan;
        assert_status(select_plan(problem_of(&desc), &machine_t4, handle.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        assert_int_equal(plan.tiles, 16);
        plan.whole_tiles = rows[i].whole_tiles, plan.k_split = rows[i].k_split, plan.splits = rows[i].splits;
        assert_status(handle_launch(&handle, problem_of(&desc), &plan), HGEMM_STATUS_SUCCESS);
        assert_int_equal(fake.launch.shared_bytes, kernel_table[KERNEL_fma_64x64].info.shared_bytes +
                                                       (rows[i].keeps ? HGEMM_FP32_KEPT_BYTES(64, 64) : 0));
    }
}

static void kernels_are_loaded_once(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    fake.load_status = HGEMM_STATUS_DEVICE_ERROR;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_DEVICE_ERROR);
    assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_DEVICE_ERROR);
    plan_t plan; /* not even a copy is made */
    assert_status(select_plan(problem_of(&desc), &machine_t4, 0, &plan), HGEMM_STATUS_SUCCESS);
    plan.copies = FACTOR_A;
    assert_status(handle_launch(&handle, problem_of(&desc), &plan), HGEMM_STATUS_DEVICE_ERROR);
    assert_int_equal(fake.launches, 0);
    fake.load_status = HGEMM_STATUS_SUCCESS;
    fake.loads = 0;
    assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.loads, 1);
    assert_int_equal(fake.launches, 0);
    int stream;
    assert_status(hgemm_set_stream(&handle, &stream), HGEMM_STATUS_SUCCESS);
    for (int i = 0; i < 3; i++)
        assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.loads, 1);
    assert_int_equal(fake.launches, 3);
    assert_ptr_equal(fake.stream, &stream);
    assert_int_equal(fake.synchronisations, 0);
}

/* Marks all choices that are known, and says how many these are. */
static int mark(void)
{
    int known = 0;
    for (int i = 0; i < KNOWN_SETS * KNOWN_WAYS; i++) {
        plan_t *plan = &handle.known[i / KNOWN_WAYS][i % KNOWN_WAYS].plan;
        if (plan->variant.kernel != KERNEL_NONE)
            known++, plan->whole_tiles = 77;
    }
    return known;
}

/* A problem that comes again is not priced again, and one that takes its place among the known is not mistaken for it.
 */
static void choices_are_remembered(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    plan_t plan, again;
    assert_status(handle_choose(&handle, problem_of(&desc), &plan), HGEMM_STATUS_SUCCESS);
    assert_int_equal(mark(), 1);
    assert_status(handle_choose(&handle, problem_of(&desc), &again), HGEMM_STATUS_SUCCESS);
    assert_int_equal(again.whole_tiles, 77);
    for (desc.m = 1; desc.m < 2 * KNOWN_SETS * KNOWN_WAYS; desc.m++) {
        assert_status(handle_choose(&handle, problem_of(&desc), &again), HGEMM_STATUS_SUCCESS);
        assert_status(select_plan(problem_of(&desc), &machine_t4, 0, &plan), HGEMM_STATUS_SUCCESS);
        assert_true(desc.m == small().m || again.tiles == plan.tiles);
        assert_int_equal(again.variant.kernel, plan.variant.kernel);
    }
}

/* The problems of a model, in turn: hardly one takes the place of another. */
static void choices_of_a_model_are_remembered(void **state)
{
    (void)state;
    enum { PROBLEMS = 64 };
    hgemm_desc_t desc = small();
    plan_t plan;
    int again = 0;
    for (desc.m = 1; desc.m <= PROBLEMS; desc.m++)
        assert_status(handle_choose(&handle, problem_of(&desc), &plan), HGEMM_STATUS_SUCCESS);
    mark();
    for (desc.m = 1; desc.m <= PROBLEMS; desc.m++) {
        assert_status(handle_choose(&handle, problem_of(&desc), &plan), HGEMM_STATUS_SUCCESS);
        again += plan.whole_tiles != 77;
    }
    assert_in_range(again, 0, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(launches_describe_the_product, set_up),
        cmocka_unit_test_setup(operands_choose_the_variant, set_up),
        cmocka_unit_test_setup(large_batches_take_several_launches, set_up),
        cmocka_unit_test_setup(large_batches_of_packed_weights_count_bytes, set_up),
        cmocka_unit_test_setup(tiles_of_all_matrices_fit_a_grid, set_up),
        cmocka_unit_test_setup(thin_blocks_have_several_tiles, set_up),
        cmocka_unit_test_setup(thin_blocks_sweep, set_up),
        cmocka_unit_test_setup(scales_take_launches, set_up),
        cmocka_unit_test_setup(whole_tiles_keep_their_sums, set_up),
        cmocka_unit_test_setup(kernels_are_loaded_once, set_up),
        cmocka_unit_test_setup(choices_are_remembered, set_up),
        cmocka_unit_test_setup(choices_of_a_model_are_remembered, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
