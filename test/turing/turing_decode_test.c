/* SPDX-License-Identifier: MIT */
/*
 * turing_decode_test FILE... - every line of the files is an instruction's 128 bits in hex, its
 * address where the text depends on it, a tab, and the vendor's text: ours must be the same. Each
 * bit of each instruction matters: flipped, it is refused or shows. Then random words and those
 * instructions with some bits flipped: what does not decode says why, what does has a text, and
 * nothing crashes.
 */
#include "turing_test.h"

#include "isa.h"

static uint64_t words[20000][2];

/* Every piece of every format names something that exists. */
static void check_table(void)
{
    const isa_row_t *rows;
    const size_t n = turing_isa_rows(&rows);
    for (size_t i = 0; i < n; i++) {
        const char *f = rows[i].format;
        unsigned sources = 0;
        isa_element_t e;
        while ((e = turing_isa_next(&f)).kind != ISA_END) {
            CHECK(e.kind != ISA_FIELD || e.field, "no such field: %s", rows[i].format);
            if (e.kind == ISA_FIXED || e.kind == ISA_RESERVED)
                CHECK(e.width && e.lo + e.width <= 105 && e.value >> e.width == 0, "bits: %s", rows[i].format);
            if (e.kind != ISA_OPERAND)
                continue;
            CHECK(e.place < 5 || strchr("dabcegrxBSpqnmtoTAkK", e.place), "no such place: %s", rows[i].format);
            CHECK(e.place != 'm' || turing_isa_mem(e.mem), "no such address: %s", rows[i].format);
            CHECK(!e.words || strchr("PmMCDNWV", e.words), "no such count: %s", rows[i].format);
            sources += strchr("abcegrxBSkK", e.place) && e.place >= 5 && !e.is_dst;
        }
        CHECK(sources <= TURING_SRC_MAX, "too many sources: %s", rows[i].format);
        CHECK(rows[i].op < TURING_OP_COUNT && rows[i].forms[0], "row: %s", rows[i].format);
    }
}

/* A flipped bit may go unseen only where the hardware would not look: in the sign of an unused
 * predicate, the payload of a NaN, the scale and width of an absent address register. */
static bool may_hide(const turing_insn_t *insn, unsigned bit, const char *text)
{
    if (bit == 71 || bit == 80 || bit == 90)
        return true;
    if (bit >= 32 && bit < 64)
        return strstr(text, "NAN");
    return insn->mem.present && insn->mem.base == TURING_RZ && (bit == 70 || bit == 78 || bit == 79);
}

static void check_bits(const turing_insn_t *insn, const char *text)
{
    char control[TURING_TEXT_MAX], other_text[TURING_TEXT_MAX], other_control[TURING_TEXT_MAX];
    turing_disasm_control(insn, control);
    for (unsigned bit = 0; bit < 128; bit++) {
        uint64_t raw[2] = {insn->raw[0], insn->raw[1]};
        turing_insn_t other;
        raw[bit / 64] ^= UINT64_C(1) << bit % 64;
        if (!turing_decode(&other, raw[0], raw[1], insn->addr, NULL))
            continue;
        turing_disasm(&other, other_text);
        turing_disasm_control(&other, other_control);
        const bool same =
            !strcmp(text, other_text) && !strcmp(control, other_control) && insn->ctl.reuse == other.ctl.reuse;
        CHECK(!same || may_hide(insn, bit, text), "bit %u of \"%s\" is ignored", bit, text);
    }
}

static void check_line(const char *file, int number, char *line, size_t *count)
{
    char *tab = strchr(line, '\t'), text[TURING_TEXT_MAX], control[TURING_TEXT_MAX];
    turing_insn_t insn;
    turing_error_t err;
    if (line[0] == '#' || !tab)
        return;
    line[strcspn(line, "\n")] = 0;
    *tab = 0;
    char *address = strchr(line, '@');
    if (address)
        *address++ = 0;
    const size_t digits = strlen(line), low = digits > 16 ? 16 : digits;
    const uint64_t lo = strtoull(line + digits - low, NULL, 16);
    line[digits - low] = 0;
    const uint64_t hi = digits > 16 ? strtoull(line, NULL, 16) : 0;
    const bool decoded = turing_decode(&insn, lo, hi, address ? (uint32_t)strtoul(address, NULL, 16) : 0, &err);
    CHECK(decoded, "%s:%d: %s: %s", file, number, tab + 1, err.text);
    if (decoded) {
        turing_disasm(&insn, text);
        CHECK(!strcmp(text, tab + 1), "%s:%d: \"%s\" is not \"%s\"", file, number, text, tab + 1);
        CHECK(turing_disasm_control(&insn, control) > 0, "%s:%d: no control word", file, number);
        if (number % 4 == 0)
            check_bits(&insn, text);
    }
    if (*count < sizeof words / sizeof *words) {
        words[*count][0] = lo;
        words[*count][1] = hi;
    }
    ++*count;
}

/* Operands become kinds; what tests have met is known, and nothing else. */
static void check_forms(void)
{
    static const struct {
        uint64_t raw[2];
        const char *form;
    } forms[] = {{{0x0000000502087225, 0x000fc80007800006}, "IMAD.WIDE.U32 R, P, R, R, R"},
                 {{0x000000ffff0b0210, 0x000fe40007ffe0ff}, "IADD3 R, R, R, R"},
                 {{0x00005c0002067a11, 0x000fc800078061ff}, "LEA R, P, -R, c, i"},
                 {{0x0000000902097211, 0x008fe200000e0cff}, "LEA.X R, R, R, i, P"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        turing_insn_t insn;
        turing_error_t err;
        char form[TURING_TEXT_MAX] = "";
        const bool known = turing_decode(&insn, forms[i].raw[0], forms[i].raw[1], 0, &err);
        CHECK(known, "%s", err.text);
        if (known)
            turing_form(&insn, form);
        CHECK(!strcmp(form, forms[i].form), "%s, not %s", form, forms[i].form);
        CHECK(turing_form_met(form), "%s", form);
    }
    CHECK(!turing_form_met("IADD3 R, R, R") && !turing_form_met("") && !turing_form_met("~"), "a form that is none");
}

int main(int argc, char **argv)
{
    size_t count = 0;
    check_table();
    check_forms();
    for (int i = 1; i < argc; i++) {
        const size_t before = count;
        FILE *file = fopen(argv[i], "r");
        char line[512];
        CHECK(file, "cannot open %s", argv[i]);
        for (int number = 1; file && fgets(line, sizeof line, file); number++)
            check_line(argv[i], number, line, &count);
        if (file)
            fclose(file);
        CHECK(count - before > 1000, "%s holds %zu instructions", argv[i], count - before);
        printf("%s: %zu instructions\n", argv[i], count - before);
    }
    CHECK(argc > 1, "no file");

    uint64_t state = 75;
    int decoded = 0;
    for (int i = 0; i < 1000000; i++) {
        turing_insn_t insn;
        turing_error_t err = {""};
        char text[TURING_TEXT_MAX];
        uint64_t word[2];
        for (int w = 0; w < 2; w++)
            word[w] = (uint64_t)random_word(&state) << 32 | random_word(&state);
        if (i % 4 && count) {
            memcpy(word, words[random_word(&state) % (count < 20000 ? count : 20000)], sizeof word);
            for (uint32_t flips = 1 + random_word(&state) % 3; flips > 0; flips--) {
                const uint32_t bit = random_word(&state) % 128;
                word[bit / 64] ^= UINT64_C(1) << bit % 64;
            }
        }
        if (turing_decode(&insn, word[0], word[1], 16, &err)) {
            decoded++;
            CHECK(turing_disasm(&insn, text) == strlen(text) && text[0], "word %d has no text", i);
        } else {
            CHECK(err.text[0], "word %d is refused without a word", i);
        }
    }
    printf("%d of 1000000 random words decode\n", decoded);
    CHECK(decoded > 1000 && decoded < 990000, "too many, or too few");
    return failures != 0;
}
