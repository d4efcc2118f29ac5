/* SPDX-License-Identifier: MIT */
/* turing - looks into cubins and runs them, without a GPU or a vendor's tool. */
#include "turing_exec.h"
#include "turing_run.h"

#include "launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: turing list FILE\n"
    "       turing disasm [-c] [-l] [-m] [-x] [-k NAME] FILE\n"
    "       turing run FILE\n"
    "       turing exec [OPTION...] PROGRAM [ARGUMENT...]\n"
    "       turing env\n"
    "\n"
    "Looks into a cubin or fatbin with sm_75 machine code and runs its kernels on an emulated T4.\n"
    "\n"
    "  list     kernels and their resources\n"
    "  disasm   machine code as text\n"
    "           -c  control words: scoreboards to wait for, released when read, when written,\n"
    "               yield, stall\n"
    "           -l  source lines, where the cubin has them\n"
    "           -m  begin the lines of the main loop with \">\": of the innermost loops with HMMA\n"
    "               the one with most of them\n"
    "           -x  the 128 bits\n"
    "           -k  this kernel only\n"
    "  run      runs a kernel as the text in FILE says: turing run --help\n"
    "\n"
    "  exec     runs a CUDA program, whose libcuda and libcudart are the emulated T4\n"
    "           as a gate of a CI, with --check: turing exec --help\n"
    "  env      the same for a shell: eval \"$(turing env)\"\n"
    "\n"
    "Exit status: 0; 1 where a file or a kernel was not understood, or a check found something; 2 where\n"
    "the arguments were not, or a run did not begin.\n";

static int is_help(const char *argument)
{
    return !strcmp(argument, "--help") || !strcmp(argument, "-h");
}

static int usage(void)
{
    fputs("turing: takes list, disasm, run, exec or env, their options and a FILE. Try turing --help.\n", stderr);
    return 2;
}

static turing_module_t *open_module(const char *path)
{
    turing_error_t err;
    turing_module_t *module = turing_module_open_file(path, &err);
    if (!module)
        fprintf(stderr, "turing: %s\n", err.text);
    return module;
}

static int list(int argc, char **argv)
{
    if (argc != 1 || argv[0][0] == '-')
        return usage();
    turing_module_t *module = open_module(argv[0]);
    if (!module)
        return 1;
    const turing_kernel_t *k;
    for (size_t i = 0; (k = turing_module_kernel(module, i)); i++) {
        printf("%s\n", k->name);
        printf("    registers %u  shared %u  local %u  barriers %u  threads ", k->registers, k->shared_bytes,
               k->local_bytes, k->barriers);
        if (k->max_threads)
            printf("%u", k->max_threads);
        else
            printf("any");
        printf("  instructions %u\n    parameters %u bytes at c[0][0x%x]:", k->code_bytes / TURING_INSN_BYTES,
               k->param_bytes, k->param_base);
        for (uint32_t p = 0; p < k->n_params; p++)
            printf(" %u+%u", k->params[p].offset, k->params[p].size);
        printf("\n    constant banks:");
        for (unsigned b = 0; b < TURING_BANKS; b++)
            if (k->bank[b].data)
                printf(" %u (%u bytes)", b, k->bank[b].size);
        printf("\n");
        turing_error_t why;
        if (k->unusable)
            printf("    cannot be executed: %s\n", k->unusable);
        else if (turing_unsupported(k, &why))
            printf("    cannot be executed: %s\n", why.text);
    }
    turing_module_close(module);
    return 0;
}

/* One instruction a line, as far as the code is understood; returns whether all is. */
static bool print_code(const turing_kernel_t *k, bool control, bool lines, bool mark, bool hex)
{
    const turing_loop_t loop = turing_main_loop(k, NULL);
    bool good = true;
    turing_line_t last = {NULL, 0};
    printf("%s:\n", k->name);
    for (uint32_t at = 0; at < k->code_bytes; at += TURING_INSN_BYTES) {
        uint64_t raw[2] = {0, 0};
        for (unsigned b = 0; b < TURING_INSN_BYTES; b++)
            raw[b / 8] |= (uint64_t)k->code[at + b] << (b % 8 * 8);
        if (lines && k->lines) {
            turing_line_t line = k->lines[at / TURING_INSN_BYTES];
            if (line.file && (line.line != last.line || !last.file || strcmp(line.file, last.file))) {
                printf("  // %s:%u\n", line.file, line.line);
                last = line;
            }
        }
        turing_insn_t insn;
        turing_error_t err;
        char text[TURING_TEXT_MAX];
        bool known = turing_decode(&insn, raw[0], raw[1], at, &err);
        printf("%s /*%04x*/  ", mark && loop.found && at >= loop.first && at <= loop.last ? ">" : " ", at);
        if (control && known) {
            turing_disasm_control(&insn, text);
            printf("%s  ", text);
        }
        if (known)
            turing_disasm(&insn, text);
        printf("%s ;", known ? text : err.text);
        if (hex)
            printf("  /* 0x%016llx%016llx */", (unsigned long long)raw[1], (unsigned long long)raw[0]);
        printf("\n");
        good = good && known;
    }
    return good;
}

static int disasm(int argc, char **argv)
{
    bool control = false, lines = false, mark = false, hex = false, good = true, any = false;
    const char *name = NULL;
    for (; argc > 1; argc--, argv++)
        if (!strcmp(*argv, "-c"))
            control = true;
        else if (!strcmp(*argv, "-l"))
            lines = true;
        else if (!strcmp(*argv, "-m"))
            mark = true;
        else if (!strcmp(*argv, "-x"))
            hex = true;
        else if (!strcmp(*argv, "-k") && argc > 2) {
            name = argv[1];
            argc--;
            argv++;
        } else
            return usage();
    if (argc != 1 || argv[0][0] == '-')
        return usage();
    turing_module_t *module = open_module(argv[0]);
    if (!module)
        return 1;
    const turing_kernel_t *k;
    for (size_t i = 0; (k = turing_module_kernel(module, i)); i++)
        if (!name || !strcmp(name, k->name)) {
            any = true;
            good = print_code(k, control, lines, mark, hex) && good;
        }
    turing_module_close(module);
    if (!any)
        fprintf(stderr, "turing: no such kernel\n");
    return any && good ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {
        {"list", list}, {"disasm", disasm}, {"run", turing_run}, {"exec", turing_exec}, {"env", turing_env},
    };
    /* `turing run` has a help of its own */
    if ((argc == 2 && is_help(argv[1])) ||
        (argc == 3 && is_help(argv[2]) && strcmp(argv[1], "run") && strcmp(argv[1], "exec"))) {
        fputs(help, stdout);
        return 0;
    }
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 2, argv + 2);
    return usage();
}
