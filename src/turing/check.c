/* SPDX-License-Identifier: MIT */
/* check.c - collects violations: one record per instruction and kind. */
#include "exec.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *advice;
} kinds[TURING_VIOLATION_COUNT] = {
    [TURING_OUT_OF_BOUNDS] = {"out of bounds",
                              "check the index arithmetic and the predicate that guards this access at "
                              "the edges, and the size that was allocated"},
    [TURING_MISALIGNED] = {"misaligned", "make base, leading dimension and offset multiples of the access size, or use "
                                         "a narrower access"},
    [TURING_UNINITIALISED] = {"uninitialised read", "write these bytes first: look for a skipped copy, a missing zero "
                                                    "fill of an edge, or a wrong address"},
    [TURING_RACE] = {"race", "put a barrier (for lanes of a warp: __syncwarp; for blocks: a fence and a flag that is "
                             "read with acquire) between the two "
                             "accesses, or use atomics for both"},
    [TURING_LANE_CONFLICT] = {"lane conflict", "let one lane write each address, or make the lanes' values equal"},
    [TURING_STALL_TOO_SHORT] = {"stall too short", "raise the stall counts between the two instructions"},
    [TURING_SCOREBOARD_MISSED] = {"scoreboard missed",
                                  "wait for the scoreboard of the producer before this instruction"},
    [TURING_SOURCE_OVERWRITTEN] = {"source overwritten",
                                   "wait for the read scoreboard of the earlier instruction before "
                                   "this one writes the register"},
    [TURING_DIVERGENT] = {"divergent", "reconverge the warp before this instruction: move it out of the branch, or "
                                       "make the condition the same for all lanes"},
    [TURING_BARRIER_MISMATCH] = {"barrier mismatch", "make every thread of the block reach the same barriers, with the "
                                                     "same numbers and counts"},
    [TURING_SAME_VALUE] = {"same value", "nothing, where the value is the same in every run; --check=race,same-value "
                                         "makes this a race"},
};

const char *turing_checks_from(const char *list, unsigned *checks)
{
    static const struct {
        const char *name;
        unsigned checks;
    } words[] = {
        {"memory", TURING_CHECK_MEMORY},
        {"race", TURING_CHECK_RACE},
        {"schedule", TURING_CHECK_SCHEDULE},
        {"convergence", TURING_CHECK_CONVERGENCE},
        {"same-value", TURING_CHECK_SAME_VALUE},
        {"leaks", TURING_CHECK_LEAKS},
        {"all", TURING_CHECK_ALL},
        {"1", TURING_CHECK_ALL},
        {"none", 0},
        {"0", 0},
        {"", 0},
    };
    enum { WORDS = sizeof words / sizeof *words };
    for (const char *word = list;; word++) {
        const size_t length = strcspn(word, ", ");
        size_t i = 0;
        while (i < WORDS && (strlen(words[i].name) != length || strncmp(word, words[i].name, length) != 0))
            i++;
        if (i == WORDS)
            return word;
        *checks |= words[i].checks;
        word += length;
        if (!*word)
            return NULL;
    }
}

const char *turing_violation_name(turing_violation_kind_t kind)
{
    return (unsigned)kind < TURING_VIOLATION_COUNT ? kinds[kind].name : "unknown";
}

const char *emu_advice(turing_violation_kind_t kind)
{
    return kinds[kind].advice;
}

static const char *space_name(turing_space_t space)
{
    static const char *const names[] = {"", "global", "shared", "local", "constant"};
    return names[space];
}

size_t turing_violation_text(const turing_violation_t *v, char *text, size_t size)
{
    char where[64] = "", lane[16] = "", line[160] = "";
    if (v->space != TURING_SPACE_NONE)
        snprintf(where, sizeof where, ", %s 0x%llx, %u bytes", space_name(v->space), (unsigned long long)v->address,
                 v->bytes);
    if (v->lane != TURING_NO_LANE)
        snprintf(lane, sizeof lane, " lane %u", v->lane);
    if (v->file)
        snprintf(line, sizeof line, " at %.128s:%u", v->file, v->line);
    int n = snprintf(text, size, "%s: %s+0x%x (%s)%s, block (%u,%u,%u) warp %u%s%s: %s; %s (%llu times)",
                     turing_violation_name(v->kind), v->kernel, v->code, v->insn, line, v->block[0], v->block[1],
                     v->block[2], v->warp, lane, where, v->what, v->advice, (unsigned long long)v->count);
    return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size ? size - 1 : 0;
}

static void hand_over(const machine_t *m, uint32_t index, const finding_t *f, uint64_t count, turing_report_fn *report)
{
    char insn[TURING_TEXT_MAX];
    turing_violation_t v = f->v;
    turing_disasm(m->ops[index].in, insn);
    v.kernel = m->kernel->name;
    v.insn = insn;
    v.count = count;
    v.what = f->what;
    v.advice = kinds[v.kind].advice;
    if (m->kernel->lines) {
        v.file = m->kernel->lines[index].file;
        v.line = m->kernel->lines[index].line;
    }
    report(m->launch->user, &v);
}

void emu_report(warp_t *w, const op_t *o, turing_violation_kind_t kind, site_t site, const char *what, ...)
{
    worker_t *worker = w->block->worker;
    if (!worker->finding)
        return;
    finding_t **slot = &worker->finding[(size_t)(o - worker->m->ops) * TURING_VIOLATION_COUNT + kind];
    machine_t *m = worker->m;
    if (*slot && (!(*slot)->forgiven_by || site.forgiven_by)) {
        (*slot)->v.count++;
        return;
    }
    finding_t *f = *slot ? *slot : calloc(1, sizeof *f); /* one that stands displaces one that may be forgiven */
    if (!f)
        return;
    *slot = f;
    f->forgiven_by = site.forgiven_by;
    f->order = w->block->linear;
    f->v = (turing_violation_t){
        .kind = kind,
        .code = o->in->addr,
        .warp = w->index,
        .lane = site.lane,
        .space = site.space,
        .address = site.address,
        .bytes = site.bytes,
        .has_other = site.has_other,
        .other_code = site.other_code,
        .other_warp = site.other_warp,
        .other_block = site.other_block,
        .count = 1,
    };
    memcpy(f->v.block, w->block->id, sizeof f->v.block);
    va_list args;
    va_start(args, what);
    vsnprintf(f->what, sizeof f->what, what, args);
    va_end(args);
    if (!m->launch->found || f->forgiven_by)
        return;
    bool *announced = &m->announced[slot - worker->finding];
    pthread_mutex_lock(&m->finding);
    if (!*announced)
        hand_over(m, (uint32_t)(o - m->ops), f, 1, m->launch->found);
    *announced = true;
    pthread_mutex_unlock(&m->finding);
}

uint64_t emu_report_all(machine_t *m, worker_t *workers, unsigned n)
{
    uint64_t reported = 0;
    for (uint32_t i = 0; i < m->n_ops; i++)
        for (int kind = 0; kind < TURING_VIOLATION_COUNT; kind++) {
            finding_t *first = NULL;
            uint64_t count = 0;
            for (unsigned j = 0; j < n; j++) {
                finding_t *f = workers[j].finding[(size_t)i * TURING_VIOLATION_COUNT + (unsigned)kind];
                if (!f || (f->forgiven_by && emu_race_forgives(m, f->forgiven_by - 1)))
                    continue;
                count += f->v.count;
                if (!first || f->order < first->order)
                    first = f;
            }
            if (!first)
                continue;
            const bool is_note = kind == TURING_SAME_VALUE;
            reported += !is_note;
            if (m->launch->found && !m->announced[(size_t)i * TURING_VIOLATION_COUNT + (unsigned)kind])
                hand_over(m, i, first, 1, m->launch->found);
            if (m->launch->report && !is_note)
                hand_over(m, i, first, count, m->launch->report);
        }
    return reported;
}
