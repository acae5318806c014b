// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The algorithm of knee_copa without a connection: one call processes up to 512
 * recorded steps, and writes the decision to each. Not loaded with the
 * controller; the conformance test runs it in the kernel.
 */
#include "copa/copa.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum step_kind { BEGIN, ACK, RESTART, LOSS, TIMEOUT, SPURIOUS, OTHER, TIMEOUT_AGAIN };

struct step {
	u64 kind;
	u64 initial_window;	/* for BEGIN */
	struct sample sample;	/* for ACK */
	struct connection connection;
	u64 window, rate;	/* the decision */
};

/* A power of two, so that a mask bounds the index. */
#define STEPS_MAX 512

struct copa state;

/* Separate from `state`: user space writes this map and reads it back. */
struct step steps[STEPS_MAX] SEC(".data.steps");

static long take(u64 index, void *unused)
{
	struct step *step = &steps[index & (STEPS_MAX - 1)];
	const struct connection *k = &step->connection;

	switch (step->kind) {
	case BEGIN:
		__builtin_memset(&state, 0, sizeof(state));
		copa_begin(&state, k, step->initial_window);
		break;
	case ACK:
		copa_on_ack(&state, &step->sample, k);
		break;
	case RESTART:
		copa_on_restart(&state, k);
		break;
	case LOSS:
		copa_on_loss(&state);
		decide(&state, k);
		break;
	case TIMEOUT:
		copa_on_loss(&state);
		copa_on_timeout(&state, k);
		break;
	case TIMEOUT_AGAIN:
		copa_on_timeout(&state, k);
		break;
	case SPURIOUS:
		copa_on_spurious(&state, k);
		break;
	default:
		decide(&state, k);
		break;
	}
	step->window = state.decided_window;
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
