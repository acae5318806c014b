/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The phases (startup.rs, probe_bw.rs and probe_rtt.rs), and the functions for
 * a connection: bbr_begin, bbr_on_ack and the events.
 */
#ifndef KNEE_BBR_H
#define KNEE_BBR_H

#include "output.h"

#define GROWTH (UNIT * 5 / 4)
#define FULL_ROUNDS 3
#define PROBE_RTT_NS (200 * NS_PER_MS)

/* ---- PROBE_BW */

part void enter_cycle(struct bbr *b, u8 phase)
{
	bool cruising = b->phase >= CRUISE;

	b->phase = phase;
	b->phase_start_ns = b->delivered_at_ns;
	if (phase >= CRUISE && !cruising)
		b->cruise_start_ns = b->delivered_at_ns;
}

part void begin_probe(struct bbr *b, u64 delivered)
{
	b->probe_begin = delivered;
	b->probe_end = U64_MAX;
	b->probe_from = paced_bw(b);
}

part void end_probe(struct bbr *b, u64 delivered)
{
	b->probe_end = delivered;
	if (b->probe_from > 0 && b->ceiling != U32_MAX)
		b->ceiling = least((u64)b->ceiling * config.gain_up >> 8, U32_MAX);
}

/* SplitMix64, then the upper half of its product with the number of phases that
 * can be drawn: all but DOWN. */
part u8 draw_phase(struct bbr *b)
{
	u64 z, below;

	b->random += 0x9e3779b97f4a7c15ULL;
	z = b->random;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	z ^= z >> 31;
	below = ((z >> 32) * (PHASES - 1) + ((z & U32_MAX) * (PHASES - 1) >> 32)) >> 32;
	return (PHASES - below) % PHASES;
}

part void enter_probe_bw(struct bbr *b, u64 delivered)
{
	b->mode = PROBE_BW;
	enter_cycle(b, UP);
	enter_cycle(b, draw_phase(b));
	b->probe_from = 0;
	if (b->phase == UP)
		begin_probe(b, delivered);
	b->settled_round = b->rounds;
}

part bool probe_is_over(const struct bbr *b, bool full_length, u64 inside, const struct sample *s)
{
	u32 bw = b->best[0].value;
	u64 target, burst = (u64)b->burst_packets * b->mss;

	if (!full_length && !config.probe_up_exit_early)
		return false;
	if (full_length && b->ceiling < bw)
		return true;
	target = in_flight_target(b, bw, b->pacing_gain);
	if (config.shrink_window)
		target = least(target, above(shrunk_window(b, bw), burst));
	return inside >= target || (full_length && s->newly_lost > 0);
}

part bool drain_is_over(const struct bbr *b, bool full_length, u64 inside)
{
	return (full_length && !config.drain_to_target) ||
	       inside <= in_flight_target(b, b->best[0].value, UNIT);
}

part bool phase_is_over(const struct bbr *b, const struct sample *s, const struct connection *c)
{
	bool full_length = us_since(b->delivered_at_ns, b->phase_start_ns) > b->min_rtt_us;
	u64 inside = in_network(b, s->prior_in_flight, c);

	if (b->pacing_gain == UNIT)
		return full_length;
	if (b->pacing_gain > UNIT)
		return probe_is_over(b, full_length, inside, s);
	return drain_is_over(b, full_length, inside);
}

/* Change max_cruise. */
part u8 next_phase(const struct bbr *b)
{
	u64 cruised_ns = above(b->delivered_at_ns, b->cruise_start_ns);

	if (b->phase >= CRUISE && cruised_ns >= config.max_cruise_ns)
		return UP;
	return (b->phase + 1) % PHASES;
}

/* Change probe_loss_gain. */
part void answer_probe_loss(struct bbr *b, const struct sample *s)
{
	bool of_probe = b->probe_begin <= s->prior_delivered &&
			s->prior_delivered <= b->probe_end && config.gain_up > UNIT &&
			!b->lt_in_use;

	if (config.probe_loss_gain < UNIT && of_probe && b->probe_from > 0) {
		b->ceiling = (u64)b->probe_from * config.probe_loss_gain >> 8;
		b->probe_from = 0;
	}
}

part void update_cycle(struct bbr *b, const struct sample *s, const struct connection *c)
{
	if (b->mode != PROBE_BW)
		return;
	if (s->newly_lost > 0)
		answer_probe_loss(b, s);
	if (phase_is_over(b, s, c)) {
		u8 next = next_phase(b);

		if (b->phase == UP)
			end_probe(b, c->delivered);
		if (next == UP)
			begin_probe(b, c->delivered);
		enter_cycle(b, next);
	}
}

/* ---- STARTUP and DRAIN */

part void check_full_pipe(struct bbr *b, bool app_limited)
{
	u32 max = b->best[0].value;

	if (b->full_reached || !b->round_start || app_limited)
		return;
	if (max >= (u64)b->full_bw * GROWTH >> 8) {
		b->full_bw = max;
		b->full_rounds = 0;
		return;
	}
	b->full_reached = ++b->full_rounds >= FULL_ROUNDS;
}

part void check_drain(struct bbr *b, const struct connection *c)
{
	u32 bw = b->best[0].value;

	if (b->mode == STARTUP && b->full_reached) {
		b->mode = DRAIN;
		b->threshold = in_flight_target(b, bw, UNIT);
	}
	if (b->mode == DRAIN && in_network(b, c->in_flight, c) <= in_flight_target(b, bw, UNIT))
		enter_probe_bw(b, c->delivered);
}

/* ---- PROBE_RTT */

/* Whether data sent at that delivered count was held back by PROBE_RTT. */
part bool held_back(const struct bbr *b, u64 delivered_at_send)
{
	return b->limited_from <= delivered_at_send && delivered_at_send <= b->limited_to;
}

part void check_probe_rtt_done(struct bbr *b, const struct connection *c)
{
	if (c->now_ns <= b->probe_rtt_done_ns)
		return;
	b->min_rtt_stamp_ns = c->now_ns;
	b->window = most(b->window, b->prior_window);
	if (config.keep_bw_over_probe_rtt)
		restore_bw(b);
	if (b->full_reached)
		enter_probe_bw(b, c->delivered);
	else
		b->mode = STARTUP;
}

part void hold_probe_rtt(struct bbr *b, const struct connection *c)
{
	if (b->probe_rtt_done_ns != U64_MAX) {
		b->probe_rtt_round_done |= b->round_start;
		if (b->probe_rtt_round_done)
			check_probe_rtt_done(b, c);
	} else if (c->in_flight <= probe_rtt_window(b, bw_of(b))) {
		b->probe_rtt_done_ns = c->now_ns + (config.probe_rtt_exit_early ? 0 : PROBE_RTT_NS);
		b->probe_rtt_round_done = false;
		b->round_end = c->delivered;
	}
}

part void update_min_rtt(struct bbr *b, const struct sample *s, const struct connection *c)
{
	bool expired = c->now_ns > b->min_rtt_stamp_ns + MIN_RTT_WINDOW_NS;
	bool entering = expired && config.probe_rtt && !b->idle_restart && b->mode != PROBE_RTT;
	u64 us = least(s->rtt_us, U32_MAX - 1);

	if (s->rtt_us != NO_RTT && (us < b->min_rtt_us || (expired && !s->ack_delayed))) {
		b->min_rtt_us = us;
		b->min_rtt_stamp_ns = c->now_ns;
	}
	if (entering) {
		b->mode = PROBE_RTT;
		save_window(b);
		b->probe_rtt_done_ns = U64_MAX;
		b->kept_bw = least(b->kept_bw, b->best[0].value);
		b->limited_from = c->delivered;
	}
	if (b->mode == PROBE_RTT) {
		b->limited_to = c->delivered + c->in_flight;
		hold_probe_rtt(b, c);
	}
	if (s->delivered > 0)
		b->idle_restart = false;
}

/* ---- functions for a connection */

part void update_gains(struct bbr *b)
{
	u32 cycle = b->phase == UP ? config.gain_up : b->phase == DOWN ? config.gain_down : UNIT;

	b->window_gain = HIGH_GAIN;
	if (b->mode == STARTUP) {
		b->pacing_gain = HIGH_GAIN;
	} else if (b->mode == DRAIN) {
		b->pacing_gain = DRAIN_GAIN;
	} else if (b->mode == PROBE_BW) {
		b->pacing_gain = b->lt_in_use ? UNIT : cycle;
		b->window_gain = config.window_gain;
	} else {
		b->pacing_gain = b->window_gain = UNIT;
	}
}

/* Begins a connection: `b` is all zero, `seed` is random. */
part void bbr_begin(struct bbr *b, const struct connection *c, u64 window, u64 seed)
{
	b->mss = c->mss;
	b->window = window;
	b->random = seed;
	b->pacing_gain = b->window_gain = HIGH_GAIN;
	b->threshold = U64_MAX;
	b->ceiling = U32_MAX;
	b->probe_rtt_done_ns = U64_MAX;
	b->limited_from = U64_MAX;
	b->min_rtt_us = c->min_rtt_us ? c->min_rtt_us : U32_MAX;
	b->min_rtt_stamp_ns = c->now_ns;
	b->round_end = c->delivered;
	b->delivered_at_ns = c->now_ns;
	restart_epoch(b, c->now_ns);
	init_pacing_rate(b, c->srtt_us);
}

part void bbr_on_ack(struct bbr *b, const struct sample *s, const struct connection *c)
{
	bool app_limited = s->app_limited || held_back(b, s->prior_delivered);

	if (s->newly_acked > 0)
		b->delivered_at_ns = c->now_ns;
	update_bandwidth(b, s, c, app_limited);
	update_aggregation(b, s);
	update_cycle(b, s, c);
	check_full_pipe(b, app_limited);
	check_drain(b, c);
	update_min_rtt(b, s, c);
	update_gains(b);
	set_pacing_rate(b, paced_bw(b), b->pacing_gain, c->srtt_us);
	set_window(b, bw_of(b), s, c);
}

/* Sending resumes with nothing in flight. */
part void bbr_on_restart(struct bbr *b, const struct connection *c)
{
	if (!c->app_limited && !held_back(b, c->delivered))
		return;
	b->idle_restart = true;
	restart_epoch(b, c->now_ns);
	if (b->mode == PROBE_BW)
		set_pacing_rate(b, paced_bw(b), UNIT, c->srtt_us);
	else if (b->mode == PROBE_RTT)
		check_probe_rtt_done(b, c);
}

/* If this begins an episode of loss, the caller saves the previous window. */
part void bbr_on_timeout(struct bbr *b, const struct connection *c)
{
	b->window = c->in_flight + b->mss;
	b->prior_recovery = LOSS;
	b->full_bw = 0;
	b->round_start = true;
	sample_long_term(b, c, b->mss, false);
}

part void bbr_on_spurious(struct bbr *b, const struct connection *c)
{
	b->full_bw = 0;
	b->full_rounds = 0;
	reset_long_term(b, c);
}

part void bbr_on_mss(struct bbr *b, u32 mss)
{
	b->best[0].value = rescaled(b->best[0].value, b->mss, mss);
	b->best[1].value = rescaled(b->best[1].value, b->mss, mss);
	b->best[2].value = rescaled(b->best[2].value, b->mss, mss);
	b->kept_bw = rescaled(b->kept_bw, b->mss, mss);
	b->lt_bw = rescaled(b->lt_bw, b->mss, mss);
	b->full_bw = rescaled(b->full_bw, b->mss, mss);
	b->probe_from = rescaled(b->probe_from, b->mss, mss);
	if (b->ceiling != U32_MAX)
		b->ceiling = rescaled(b->ceiling, b->mss, mss);
	b->mss = mss;
	b->rate_computed = false;
}

#endif
