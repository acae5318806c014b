// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The algorithm of bbr_low_delay without a connection: one call processes up to
 * 512 steps of a recorded file, and writes the decision to each. Not loaded
 * with the controller; the conformance test runs it in the kernel.
 */
#include "bbr/bbr.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum step_kind { BEGIN, ACK, RESTART, SAVE_WINDOW, TIMEOUT, SPURIOUS, NEW_MSS };

struct step {
	u64 kind;
	u64 seed, initial_window;	/* for BEGIN */
	struct sample sample;		/* for ACK */
	struct connection connection;
	u64 window, rate;		/* the decision */
};

/* A power of two, so that a mask bounds the index. */
#define STEPS_MAX 512

struct bbr state;

/* Separate from `state`: user space writes this map and reads it back. */
struct step steps[STEPS_MAX] SEC(".data.steps");

static long take(u64 index, void *unused)
{
	struct step *step = &steps[index & (STEPS_MAX - 1)];
	const struct sample *s = &step->sample;
	const struct connection *c = &step->connection;

	switch (step->kind) {
	case BEGIN:
		__builtin_memset(&state, 0, sizeof(state));
		bbr_begin(&state, c, step->initial_window, step->seed);
		break;
	case ACK:
		bbr_on_ack(&state, s, c);
		break;
	case RESTART:
		bbr_on_restart(&state, c);
		break;
	case TIMEOUT:
		if (c->recovery != LOSS)
			save_window(&state);
		bbr_on_timeout(&state, c);
		break;
	case SAVE_WINDOW:
		save_window(&state);
		break;
	case SPURIOUS:
		bbr_on_spurious(&state, c);
		break;
	case NEW_MSS:
		bbr_on_mss(&state, c->mss);
		break;
	}
	step->window = state.window;
	step->rate = state.rate;
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
