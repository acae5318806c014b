// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The algorithm of knee_bbr3 without a connection: one call processes up to 512
 * recorded steps, and writes the decision to each. Not loaded with the
 * controller; the conformance test runs it in the kernel.
 */
#include "bbr3/bbr3.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum step_kind { BEGIN, ACK, RESTART, RECOVERY_START, TIMEOUT, SPURIOUS, RECOVERY_END, LOST };

struct step {
	u64 kind;
	u64 seed, initial_window;	/* for BEGIN */
	struct sample sample;		/* for ACK */
	struct loss loss;		/* for LOST */
	struct connection connection;
	u64 window, rate, phase;	/* the decision */
};

/* A power of two, so that a mask bounds the index. */
#define STEPS_MAX 512

struct bbr3 state;

/* Separate from `state`: user space writes this map and reads it back. */
struct step steps[STEPS_MAX] SEC(".data.steps");

static long take(u64 index, void *unused)
{
	struct step *step = &steps[index & (STEPS_MAX - 1)];
	const struct connection *c = &step->connection;

	switch (step->kind) {
	case BEGIN:
		__builtin_memset(&state, 0, sizeof(state));
		bbr3_begin(&state, c, step->initial_window, step->seed);
		break;
	case ACK:
		bbr3_on_ack(&state, &step->sample, c);
		break;
	case RESTART:
		bbr3_on_restart(&state, c);
		break;
	case RECOVERY_START:
		bbr3_on_recovery_start(&state);
		break;
	case TIMEOUT:
		bbr3_on_timeout(&state, c);
		break;
	case SPURIOUS:
		bbr3_on_spurious(&state, c);
		break;
	case RECOVERY_END:
		bbr3_on_recovery_end(&state);
		break;
	case LOST:
		bbr3_on_loss(&state, &step->loss, c);
		break;
	}
	step->window = state.window;
	step->rate = state.rate;
	step->phase = state.phase;
	return 0;
}

struct batch {
	u32 steps;
};

SEC("syscall")
int replay(struct batch *batch)
{
	bpf_loop(batch->steps, take, (void *)0, 0);
	return 0;
}
