/* SPDX-License-Identifier: MIT */
/* The emulated T4's clock, as the library has it: events, launches that are watched, and dry ones, which take the same
 * time. */
#include "emulated.h"
#include "problem/names.h"
#include "device/t4emu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Events are apart by the modelled time of the launches between them, always the same. */
static void events_tell_modelled_time(void **state)
{
    (void)state;
    float elapsed[2], idle;
    turing_time_t sum = {0};
    for (int i = 0; i < 2; i++) {
        open_device("t4emu:time");
        device_t *device = handle->device;
        void *a = allocate(BYTES, zeros), *c = allocate(BYTES, NULL), *event[3];
        for (int j = 0; j < 3; j++)
            assert_int_equal(device->ops->event_create(device, &event[j]), HGEMM_STATUS_SUCCESS);
        assert_int_equal(device->ops->event_record(device, event[0], NULL), HGEMM_STATUS_SUCCESS);
        assert_int_equal(multiply(a, a, c), HGEMM_STATUS_SUCCESS);
        device_t4emu_time(device, &sum);
        assert_int_equal(multiply(a, a, c), HGEMM_STATUS_SUCCESS);
        device_t4emu_time(device, NULL);
        assert_int_equal(device->ops->event_record(device, event[1], NULL), HGEMM_STATUS_SUCCESS);
        assert_int_equal(device->ops->event_record(device, event[2], NULL), HGEMM_STATUS_SUCCESS);
        device->ops->event_elapsed(device, event[0], event[1], &elapsed[i]);
        device->ops->event_elapsed(device, event[1], event[2], &idle);
        assert_true(idle == 0);
        for (int j = 0; j < 3; j++)
            device->ops->event_destroy(device, event[j]);
        close_device();
    }
    assert_true(elapsed[0] == elapsed[1]);
    const float second = (float)(sum.cycles / 2 / (TURING_T4_MHZ * 1e3)); /* the later of two launches, ms */
    assert_true(second > 0.0005f && elapsed[0] > 2 * second && elapsed[0] < 10 * second);
}

typedef struct watched_t {
    uint64_t issues, hmma;
    double tensor, lsu; /* cycles busy, of all units together            */
    double tensor_free[TURING_T4_SMS][4], lsu_free[TURING_T4_SMS], last; /* until when */
} watched_t;

/* A launch that fails ends a measurement: those after it compute, though they be dry where they are timed. */
static void a_failed_launch_is_not_timed(void **state)
{
    (void)state;
    void *event;
    uint16_t d[N * N];
    open_device("t4emu:time,dry");
    device_t *device = handle->device;
    void *a = allocate(BYTES, zeros), *c = allocate(BYTES, NULL);
    assert_int_equal(device->ops->event_create(device, &event), HGEMM_STATUS_SUCCESS);
    assert_int_equal(device->ops->event_record(device, event, NULL), HGEMM_STATUS_SUCCESS);
    hgemm_desc_t desc; /* a dry launch computes nothing, scales neither */
    hgemm_desc_init(&desc);
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.type_a = desc.type_b = HGEMM_TYPE_BF16;
    desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldd = N;
    desc.a = desc.b = a, desc.d = c;
    assert_int_equal(hgemm_run_desc(handle, &desc), HGEMM_STATUS_DEVICE_ERROR);
    assert_int_equal(multiply(a, a, c), HGEMM_STATUS_SUCCESS);
    assert_int_equal(hgemm_download(handle, d, c, BYTES), HGEMM_STATUS_SUCCESS);
    assert_memory_equal(d, zeros, BYTES);
    device->ops->event_destroy(device, event);
    close_device();
}

/* No unit does two things at a time, and nothing begins before it is issued. */
static void watch(void *user, const turing_issue_t *issue)
{
    watched_t *w = user;
    assert_true(issue->sm < TURING_T4_SMS && issue->sub_core < 4 && issue->warp % 4 == issue->sub_core);
    assert_true(issue->issued <= issue->begin && issue->begin <= issue->end);
    w->issues++;
    if (issue->insn->op == TURING_HMMA_1688) {
        double *unit = &w->tensor_free[issue->sm][issue->sub_core];
        assert_true(issue->begin >= *unit);
        *unit = issue->end;
        w->tensor += issue->end - issue->begin;
        w->hmma++;
    }
    if (issue->insn->op == TURING_LDSM || issue->insn->op == TURING_STS) {
        assert_true(issue->begin >= w->lsu_free[issue->sm]);
        w->lsu_free[issue->sm] = issue->end;
        w->lsu += issue->end - issue->begin;
    }
    w->last = issue->end > w->last ? issue->end : w->last;
}

/* Who watches a modelled launch sees all that its figures count. */
static void a_launch_can_be_watched(void **state)
{
    (void)state;
    enum { SIDE = 256 };
    static watched_t w;
    turing_time_t sum = {0};
    open_device("t4emu:time");
    void *a = allocate(SIDE * SIDE * 2, NULL), *c = allocate(SIDE * SIDE * 2, NULL);
    device_t4emu_time(handle->device, &sum);
    for (int i = 0; i < 2; i++) { /* the second launch is not watched */
        device_t4emu_watch(handle->device, i ? NULL : watch, &w);
        assert_int_equal(hgemm_run(handle, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, SIDE, SIDE, SIDE, 1, a, SIDE, a,
                                   SIDE, 0, c, SIDE),
                         HGEMM_STATUS_SUCCESS);
    }
    close_device();
    assert_true(w.hmma == SIDE / 16 * (SIDE / 8) * (SIDE / 8));
    assert_true(w.issues > w.hmma && 2 * w.issues <= sum.instructions);
    const double tensor = w.tensor / (TURING_T4_SMS * 4), lsu = w.lsu / TURING_T4_SMS;
    assert_true(2 * tensor > 0.999 * sum.tensor && 2 * tensor < 1.001 * sum.tensor);
    assert_true(lsu > 0 && 2 * lsu < sum.lsu && w.last > tensor);
}

static hgemm_weights_t square_of_int4(int side)
{
    hgemm_weights_t weights;
    hgemm_weights_init(&weights);
    weights.n = weights.k = side, weights.code = HGEMM_CODE_INT4, weights.group = 128;
    return weights;
}

/* Few rows by packed weights wait for the bytes of these, and for nothing else: not for a group's scales, which are
 * loaded a group ahead. */
static void packed_weights_take_the_time_of_their_bytes(void **state)
{
    (void)state;
    enum { M = 16, SIDE = 4096, OTHER_BYTES = 2 * 2 * M * SIDE, LAUNCHES = 2 };
    const double bytes_per_clock = 261e9 / (TURING_T4_MHZ * 1e6); /* the most that DRAM gives */
    const hgemm_weights_t weights = square_of_int4(SIDE);
    size_t packed;
    assert_int_equal(hgemm_weights_bytes(&weights, &packed), HGEMM_STATUS_SUCCESS);
    open_device("t4emu:time,dry");
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.kernel = hgemm_find_kernel("weights_16x128");
    desc.accumulate = HGEMM_ACCUMULATE_F32, desc.op_b = HGEMM_OP_T, desc.weights = &weights;
    desc.m = M, desc.n = desc.k = desc.lda = desc.ldb = desc.ldd = SIDE;
    desc.a = allocate(OTHER_BYTES / 2, NULL), desc.b = allocate(packed, NULL), desc.d = allocate(OTHER_BYTES / 2, NULL);
    turing_time_t sum = {0};
    device_t4emu_time(handle->device, &sum);
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    for (int i = 0; i < LAUNCHES && status == HGEMM_STATUS_SUCCESS; i++)
        status = hgemm_run_desc(handle, &desc);
    close_device();
    if (status == HGEMM_STATUS_NOT_SUPPORTED) /* a build without the kernel */
        skip();
    assert_int_equal(status, HGEMM_STATUS_SUCCESS);
    const double floor = (double)(packed + OTHER_BYTES) / bytes_per_clock, clocks = sum.cycles / LAUNCHES;
    assert_true(floor < clocks && clocks < 1.15 * floor);
}

/* Experts of packed weights, two for each token, by the library's choice: the bytes of those that have rows bind. */
static void experts_take_the_time_of_their_bytes(void **state)
{
    (void)state;
    enum { EXPERTS = 8, SIDE = 4096, MOST_ROWS = 128 };
    static const int rows[][EXPERTS] = {
        {0, 1, 0, 0, 0, 1, 0, 0},
        {5, 2, 4, 3, 6, 4, 5, 3},
        {17, 12, 20, 15, 14, 19, 16, 15},
    };
    const hgemm_weights_t weights = square_of_int4(SIDE);
    size_t packed;
    assert_int_equal(hgemm_weights_bytes(&weights, &packed), HGEMM_STATUS_SUCCESS);
    open_device("t4emu:time,dry");
    void *a = allocate(2 * MOST_ROWS * SIDE, NULL), *b = allocate(EXPERTS * packed, NULL),
         *d = allocate(2 * MOST_ROWS * SIDE, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int ends[EXPERTS], all = 0, hit = 0;
        for (int e = 0; e < EXPERTS; e++)
            all += rows[i][e], hit += rows[i][e] > 0, ends[e] = all;
        assert_true(all <= MOST_ROWS);
        hgemm_desc_t desc;
        hgemm_desc_init(&desc);
        desc.accumulate = HGEMM_ACCUMULATE_F32, desc.op_b = HGEMM_OP_T, desc.weights = &weights;
        desc.m = all, desc.n = desc.k = desc.lda = desc.ldd = SIDE;
        desc.batch = EXPERTS, desc.batch_mode = HGEMM_BATCH_GROUPED, desc.stride_b = (int64_t)packed;
        desc.a = a, desc.b = b, desc.d = d, desc.group_ends = allocate(sizeof ends, ends);
        turing_time_t sum = {0};
        device_t4emu_time(handle->device, &sum);
        assert_int_equal(hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS);
        device_t4emu_time(handle->device, NULL);
        const double floor = hit * (double)packed * (TURING_T4_MHZ * 1e6) / 261e9; /* the most that DRAM gives */
        if (sum.cycles < floor || sum.cycles > 1.15 * floor)
            fail_msg("%d rows of %d experts: %.0f clocks, %.2f of their bytes' time", all, hit, sum.cycles,
                     sum.cycles / floor);
    }
    close_device();
}

/* Modelled time of a product with one kernel, with beta where C is to be read; 0 where the build lacks the variant. */
static turing_time_t time_of(const char *name, int kernel, const hgemm_kernel_info_t *info, unsigned ops, int64_t m,
                             int64_t n, int64_t k, float beta)
{
    turing_time_t sum = {0};
    hgemm_desc_t desc;
    open_device(name);
    hgemm_desc_init(&desc);
    desc.kernel = kernel;
    desc.accumulate = info->accumulate;
    desc.op_a = ops & (HGEMM_OPS_TN | HGEMM_OPS_TT) ? HGEMM_OP_T : HGEMM_OP_N;
    desc.op_b = ops & (HGEMM_OPS_NT | HGEMM_OPS_TT) ? HGEMM_OP_T : HGEMM_OP_N;
    desc.m = m, desc.n = n, desc.k = k;
    desc.lda = desc.op_a ? m : k, desc.ldb = desc.op_b ? k : n, desc.ldc = desc.ldd = n;
    desc.beta = beta;
    void *operand[4];
    const int64_t elements[] = {m * k, k * n, m * n, m * n};
    for (int i = 0; i < 4; i++) {
        void *zero = calloc((size_t)elements[i], 2);
        operand[i] = allocate((size_t)elements[i] * 2, zero);
        free(zero);
    }
    desc.a = operand[0], desc.b = operand[1], desc.c = operand[2], desc.d = operand[3];
    device_t4emu_time(handle->device, &sum);
    const hgemm_status_t status = hgemm_run_desc(handle, &desc);
    device_t4emu_time(handle->device, NULL);
    if (status != HGEMM_STATUS_SUCCESS && status != HGEMM_STATUS_NOT_SUPPORTED)
        fail_msg("%s on %s: %s %s", info->name, name, hgemm_status_name(status), hgemm_error_detail(handle));
    close_device();
    return sum;
}

/* A dry launch takes the time of one that computes, with every kernel: whole tiles, edges and parts of k in turn. */
static void dry_launches_take_the_same_time(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{37, 41, 29}, {130, 130, 330}, {72, 136, 72}};
    int compared = 0;
    for (int kernel = 1; kernel <= hgemm_kernel_count(); kernel++) {
        hgemm_kernel_info_t info;
        assert_int_equal(hgemm_get_kernel_info(kernel, &info), HGEMM_STATUS_SUCCESS);
        const int i = info.any_alignment ? kernel % 3 : 2;
        const int64_t *s = shapes[i];
        const unsigned ops = info.ops == HGEMM_OPS_NN ? HGEMM_OPS_NN : 1U << (unsigned)(kernel / 3) % 4;
        const float beta = (float)(kernel % 2);
        const turing_time_t full = time_of("t4emu:time", kernel, &info, ops, s[0], s[1], s[2], beta),
                            dry = time_of("t4emu:time,dry", kernel, &info, ops, s[0], s[1], s[2], beta);
        if (memcmp(&full, &dry, sizeof full) != 0)
            fail_msg("%s, shape %d: %.0f cycles, dry %.0f", info.name, i, full.cycles, dry.cycles);
        compared += full.cycles > 0;
    }
    assert_true(compared > 0);
}

/* Lines that a thin kernel sweeps (ptx/thin_sweep.cuh) have a way of their own for each number of columns: no jump by a
 * table chooses it, which a dry launch would take for an activation's. */
static void dry_launches_sweep(void **state)
{
    (void)state;
    enum { LINES = 150, K = 72 };
    for (int columns = 1; columns <= 4; columns++)
        for (int wide = 0; wide < 2; wide++) {
            const char *const name = wide ? "thin_8x512" : "thin_512x8";
            const int kernel = hgemm_find_kernel(name);
            hgemm_kernel_info_t info;
            assert_int_equal(hgemm_get_kernel_info(kernel, &info), HGEMM_STATUS_SUCCESS);
            const int64_t m = wide ? columns : LINES, n = wide ? LINES : columns;
            const turing_time_t full = time_of("t4emu:time", kernel, &info, HGEMM_OPS_NT, m, n, K, 1),
                                dry = time_of("t4emu:time,dry", kernel, &info, HGEMM_OPS_NT, m, n, K, 1);
            if (memcmp(&full, &dry, sizeof full) != 0)
                fail_msg("%s, %d columns: %.0f cycles, dry %.0f", name, columns, full.cycles, dry.cycles);
            assert_true(full.cycles > 0);
        }
}

/* Where matrices and rows are reached by pointers and indices, which memory holds, a dry launch follows them, too. */
static void dry_launches_follow_pointers_and_indices(void **state)
{
    (void)state;
    enum { ROWS = 150, K = 72, COLUMNS = 136, BATCH = 3, POINTERS = 0, GROUPS, GATHERS, SCATTERS, WAYS };
    for (int trial = 0; trial < WAYS * 4; trial++) {
        const int way = trial % WAYS, transposed = trial / WAYS % 2, f32 = trial / WAYS / 2;
        turing_time_t sum[2] = {{0}};
        for (int dry = 0; dry < 2; dry++) {
            hgemm_desc_t desc;
            open_device(dry ? "t4emu:time,dry" : "t4emu:time");
            hgemm_desc_init(&desc);
            desc.accumulate = f32 ? HGEMM_ACCUMULATE_F32 : HGEMM_ACCUMULATE_F16;
            desc.op_a = transposed ? HGEMM_OP_T : HGEMM_OP_N, desc.op_b = transposed ? HGEMM_OP_N : HGEMM_OP_T;
            desc.m = ROWS, desc.n = COLUMNS, desc.k = K;
            desc.lda = transposed ? ROWS + 2 : K, desc.ldb = transposed ? COLUMNS : K, desc.ldc = desc.ldd = COLUMNS;
            desc.stride_b = K * COLUMNS, desc.beta = (float)f32;
            static const uint16_t zero[(ROWS + 2) * COLUMNS * BATCH];
            void *operand[4];
            for (int i = 0; i < 4; i++)
                operand[i] = allocate(sizeof zero, zero);
            int64_t index[ROWS];
            if (way == POINTERS) {
                desc.batch_mode = HGEMM_BATCH_POINTERS, desc.batch = BATCH, desc.alignment = 16;
                for (int i = 0; i < 4; i++) {
                    uint64_t pointer[BATCH];
                    for (int j = 0; j < BATCH; j++)
                        pointer[j] = (uintptr_t)operand[i] + (uint64_t)j * (ROWS + 2) * COLUMNS * 2;
                    operand[i] = allocate(sizeof pointer, pointer);
                }
            } else if (way == GROUPS) {
                static const int64_t ends[BATCH] = {70, 70, 141};
                desc.batch_mode = HGEMM_BATCH_GROUPED, desc.batch = BATCH;
                desc.group_ends = allocate(sizeof ends, ends);
            } else {
                for (int i = 0; i < ROWS; i++)
                    index[i] = (i * 7 + 3) % ROWS;
                *(way == GATHERS ? &desc.gather_a : &desc.scatter_d) = allocate(sizeof index, index);
            }
            desc.index_type = HGEMM_INDEX_I64;
            desc.a = operand[0], desc.b = operand[1], desc.c = operand[2], desc.d = operand[3];
            device_t4emu_time(handle->device, &sum[dry]);
            const hgemm_status_t status = hgemm_run_desc(handle, &desc);
            if (status != HGEMM_STATUS_SUCCESS)
                fail_msg("trial %d, dry %d: %s", trial, dry, hgemm_error_detail(handle));
            close_device();
        }
        if (memcmp(&sum[0], &sum[1], sizeof *sum) != 0)
            fail_msg("trial %d: %.0f cycles, dry %.0f", trial, sum[0].cycles, sum[1].cycles);
    }
}

/* With an activation a dry launch takes the same time, or says that it cannot tell; its D is missing. */
static void activations_are_timed_or_refused(void **state)
{
    (void)state;
    enum { SIDE = 64 };
    static uint16_t a[SIDE * SIDE], d[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++)
        a[i] = hgemm_half_from_float((float)(i % 23 - 11) / 8);
    for (int activation = HGEMM_ACTIVATION_NONE; activation < ACTIVATION_COUNT; activation++) {
        turing_time_t sum[2] = {{0}};
        hgemm_status_t status[2];
        for (int dry = 0; dry < 2; dry++) {
            hgemm_desc_t desc;
            open_device(dry ? "t4emu:time,dry" : "t4emu:time");
            hgemm_desc_init(&desc);
            desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldd = SIDE;
            desc.activation = (hgemm_activation_t)activation;
            desc.a = desc.b = allocate(sizeof a, a);
            desc.d = allocate(sizeof d, NULL);
            device_t4emu_time(handle->device, &sum[dry]);
            status[dry] = hgemm_run_desc(handle, &desc);
            if (status[dry] != HGEMM_STATUS_SUCCESS)
                assert_non_null(strstr(hgemm_error_detail(handle), "dry"));
            assert_true((hgemm_download(handle, d, desc.d, sizeof d) == HGEMM_STATUS_SUCCESS) == !dry ||
                        status[dry] != HGEMM_STATUS_SUCCESS);
            close_device();
        }
        assert_int_equal(status[0], HGEMM_STATUS_SUCCESS);
        assert_int_equal(status[1], activation ? status[1] : HGEMM_STATUS_SUCCESS);
        if (status[1] == HGEMM_STATUS_SUCCESS)
            assert_memory_equal(&sum[0], &sum[1], sizeof sum[0]);
        printf("activation %d, dry: %s\n", activation, hgemm_status_name(status[1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_tell_modelled_time),
        cmocka_unit_test(a_failed_launch_is_not_timed),
        cmocka_unit_test(a_launch_can_be_watched),
        cmocka_unit_test(packed_weights_take_the_time_of_their_bytes),
        cmocka_unit_test(experts_take_the_time_of_their_bytes),
        cmocka_unit_test(dry_launches_take_the_same_time),
        cmocka_unit_test(dry_launches_sweep),
        cmocka_unit_test(dry_launches_follow_pointers_and_indices),
        cmocka_unit_test(activations_are_timed_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
