/* A plugin of QEMU's for arm64 programs: counts the instructions that are executed, by kind.

   Whenever the program calls getsid(2), a line is added to the
   file named by the argument out: all instructions so far, those that multiply and add vectors
   of floats, those that do so by a lane, and those that go to memory. The functions are those of the plugin interface
   of QEMU 7.2, of which Debian has no header. Blocks of instructions are counted where they begin,
   without locks: for programs of one thread. */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define GETSID 156 /* on arm64 */

struct tb;
struct insn;
typedef void translated(uint64_t id, struct tb *block);
typedef void called(uint64_t id, unsigned cpu, int64_t number, uint64_t, uint64_t, uint64_t,
                    uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translated *callback);
void qemu_plugin_register_vcpu_syscall_cb(uint64_t id, called *callback);
size_t qemu_plugin_tb_n_insns(const struct tb *block);
struct insn *qemu_plugin_tb_get_insn(const struct tb *block, size_t at);
const void *qemu_plugin_insn_data(const struct insn *one);
void qemu_plugin_register_vcpu_tb_exec_inline(struct tb *block, int add, void *counter,
                                              uint64_t much);

EXPORT int qemu_plugin_version = 1;

enum { ALL, VECTORS, BY_LANE, MEMORY, KINDS };
static uint64_t counts[KINDS];
static FILE *out;

/* Arm Architecture Reference Manual, C4.1: what goes to memory are the encodings x1x0 of bits 28 to
   25; FMLA is there for vectors, and for a vector by a lane. */
static int kind(uint32_t code) {
    if ((code & 0x0A000000) == 0x08000000) return MEMORY;
    int vectors = (code & 0xBFA0FC00) == 0x0E20CC00;
    int by_lane = (code & 0xBF80F400) == 0x0F801000;
    return by_lane ? BY_LANE : vectors ? VECTORS : ALL;
}

static void on_block(uint64_t id, struct tb *block) {
    uint64_t found[KINDS] = {0};
    for (size_t at = 0; at < qemu_plugin_tb_n_insns(block); at++) {
        uint32_t code;
        memcpy(&code, qemu_plugin_insn_data(qemu_plugin_tb_get_insn(block, at)), sizeof code);
        int what = kind(code);
        found[ALL]++;
        if (what != ALL) found[what]++;
    }
    for (int what = 0; what < KINDS; what++)
        if (found[what]) qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &counts[what], found[what]);
}

static void on_call(uint64_t id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c,
                    uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
    if (number != GETSID) return;
    for (int what = 0; what < KINDS; what++)
        fprintf(out, "%llu ", (unsigned long long)counts[what]);
    fprintf(out, "\n");
    fflush(out);
}

EXPORT int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv) {
    if (argc != 1 || strncmp(argv[0], "out=", 4) || !(out = fopen(argv[0] + 4, "w"))) return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
    qemu_plugin_register_vcpu_syscall_cb(id, on_call);
    return 0;
}
