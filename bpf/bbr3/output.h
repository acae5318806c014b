/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* output.rs: pacing rate and window from the model and the phase. */
#ifndef KNEE_BBR3_OUTPUT_H
#define KNEE_BBR3_OUTPUT_H

#include "types.h"

#define ASSUMED_RTT_US 1000
#define LARGEST_BURST 65536

part u32 pacing_gain(const struct bbr3 *b)
{
	switch (b->phase) {
	case STARTUP:
		return config.startup_gain;
	case DRAIN:
		return config.drain_gain;
	case DOWN:
		return config.gain_down;
	case UP:
		return config.gain_up;
	default:
		return UNIT;
	}
}

part u32 window_gain(const struct bbr3 *b)
{
	switch (b->phase) {
	case STARTUP:
		return config.startup_window_gain;
	case UP:
		return 2250;
	case PROBE_RTT:
		return UNIT / 2;
	default:
		return 2000;
	}
}

part void put_rate(struct bbr3 *b, u64 rate)
{
	b->rate = most(rate, b->mss);
}

part void init_pacing_rate(struct bbr3 *b, u32 srtt_us)
{
	b->has_rtt = srtt_us > 0;
	put_rate(b, b->initial_window * 1000000 / (b->has_rtt ? srtt_us : ASSUMED_RTT_US) *
			    config.startup_gain / 1000);
}

part void set_pacing_rate(struct bbr3 *b, u32 gain, u32 srtt_us)
{
	u64 rate = b->bw * ((u64)gain * 99) / (UNIT * 100);

	if (!b->has_rtt && srtt_us > 0)
		init_pacing_rate(b, srtt_us);
	if (b->full_reached || rate > b->rate)
		put_rate(b, rate);
}

part void update_quantum(struct bbr3 *b)
{
	u32 mss = b->mss ? b->mss : 1;

	b->quantum = most(least(b->rate / 1000, LARGEST_BURST) / mss, 2) * mss;
}

part u64 bdp_multiple_of(const struct bbr3 *b, u64 rate, u32 min_rtt_us, u32 gain)
{
	if (min_rtt_us == U32_MAX)
		return b->initial_window;
	return bytes_in(rate, min_rtt_us) * gain / UNIT;
}

part u64 bdp_multiple(const struct bbr3 *b, u64 rate, u32 gain)
{
	return bdp_multiple_of(b, rate, b->min_rtt_us, gain);
}

part u64 bdp(const struct bbr3 *b, u64 rate)
{
	return bdp_multiple(b, rate, UNIT);
}

part u64 with_budget(const struct bbr3 *b, u64 bytes)
{
	u64 roomy = most(most(bytes, config.offload_quanta * b->quantum), floor_of(b));

	return b->phase == UP ? roomy + 2 * b->mss : roomy;
}

part u64 in_flight_target(const struct bbr3 *b, u64 rate)
{
	return with_budget(b, bdp(b, rate));
}

part u64 target_in_flight(const struct bbr3 *b)
{
	return least(bdp(b, b->bw), b->window);
}

part u64 in_flight_with_headroom(const struct bbr3 *b)
{
	u64 headroom;

	if (b->in_flight_long == NONE)
		return NONE;
	headroom = most(share(b->in_flight_long, config.headroom), b->mss);
	return most(above(b->in_flight_long, headroom), floor_of(b));
}

part u64 probe_rtt_window(const struct bbr3 *b)
{
	u32 min_rtt_us = least(b->min_rtt_us, b->probe_us);

	return most(bdp_multiple_of(b, b->bw, min_rtt_us, UNIT / 2), floor_of(b));
}

/* ---- aggregation.rs */

#define EXTRA_ROUNDS 10
#define EXTRA_ROUNDS_IN_STARTUP 1

part void restart_interval(struct bbr3 *b, u64 now_ns)
{
	b->interval_start_ns = now_ns;
	b->interval_acked = 0;
}

part void update_aggregation(struct bbr3 *b, const struct sample *s, const struct connection *c)
{
	u32 rounds = b->full_reached ? EXTRA_ROUNDS : EXTRA_ROUNDS_IN_STARTUP;
	u64 expected;

	if (!s->newly_acked)
		return;
	expected = bytes_in(b->bw, us_since(c->now_ns, b->interval_start_ns));
	if (b->interval_acked <= expected) {
		restart_interval(b, c->now_ns);
		expected = 0;
	}
	b->interval_acked += s->newly_acked;
	update_max(b->extra, rounds, b->rounds,
		   least(least(above(b->interval_acked, expected), b->window), U32_MAX));
}

part u64 extra_acked(const struct bbr3 *b)
{
	u64 extra = b->extra[0].value;

	if (config.extra_acked_limit_us == U64_MAX)
		return extra;
	return least(extra, bytes_in(b->bw, config.extra_acked_limit_us));
}

/* ---- the window */

part void bound_window(struct bbr3 *b)
{
	u64 cap = NONE;

	if (b->phase == CRUISE || b->phase == PROBE_RTT)
		cap = in_flight_with_headroom(b);
	else if (b->phase >= DOWN)
		cap = b->in_flight_long;
	b->window = least(b->window, most(least(cap, b->in_flight_short), floor_of(b)));
}

part void set_window(struct bbr3 *b, const struct sample *s, const struct connection *c)
{
	u64 target = with_budget(b, bdp_multiple(b, b->bw, window_gain(b)) + extra_acked(b));

	if (s->newly_acked > 0) {
		if (b->full_reached)
			b->window = least(b->window + s->newly_acked, target);
		else if (b->window < target || c->delivered < b->initial_window)
			b->window += s->newly_acked;
		if (config.startup_loss == CONSERVE && b->phase == STARTUP &&
		    c->recovery == RECOVERY)
			b->window = least(b->window, c->in_flight + s->newly_acked);
		b->window = most(b->window, floor_of(b));
	}
	if (b->phase == PROBE_RTT)
		b->window = least(b->window, probe_rtt_window(b));
	bound_window(b);
}

#endif
