/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The rest of crates/knee-cc/src/bbr3 (bandwidth.rs, startup.rs, congestion.rs,
 * probe_bw.rs, probe_rtt.rs), and the functions for a connection: bbr3_begin,
 * bbr3_on_ack, bbr3_on_loss and the events.
 */
#ifndef KNEE_BBR3_H
#define KNEE_BBR3_H

#include "output.h"

#define FLAT_ROUNDS 3
#define ROUNDS_MAX 63
#define WAIT_MIN_NS (2 * NS_PER_S)
#define WAIT_RANDOM_NS NS_PER_S
#define SLOPE_MAX 30
#define PROBE_RTT_NS (200 * NS_PER_MS)

/* ---- bandwidth.rs */

part void start_round(struct bbr3 *b, u64 delivered)
{
	b->round_end = delivered;
}

part void take_rate(struct bbr3 *b, const struct sample *s)
{
	b->rate_sample = s->interval_us > 0 && s->newly_acked > 0 ?
				 s->delivered * 1000000 / s->interval_us : 0;
}

part void update_bandwidth(struct bbr3 *b, const struct sample *s, const struct connection *c,
			   bool app_limited)
{
	b->round_start = false;
	if (!b->rate_sample)
		return;
	if (s->prior_delivered >= b->round_end) {
		start_round(b, c->delivered);
		b->rounds++;
		b->round_start = true;
		b->cycle_rounds++;
	}
	if (!app_limited || b->rate_sample >= max_bw(b))
		b->cycles[1] = most(b->cycles[1], b->rate_sample);
}

/* Advances the bandwidth filter, once per cycle. */
part void advance_filter(struct bbr3 *b)
{
	if (b->advanced)
		return;
	if (b->cycles[1] > 0) {
		b->cycles[0] = b->cycles[1];
		b->cycles[1] = 0;
	}
	b->advanced = true;
}

/* ---- congestion.rs, and the state of the phases that it changes */

part void save_window(struct bbr3 *b)
{
	bool cut = b->saved || b->phase == PROBE_RTT;

	b->prior_window = cut ? most(b->prior_window, b->window) : b->window;
}

part void restore_window(struct bbr3 *b)
{
	b->window = most(b->window, b->prior_window);
}

part void forget_short_term(struct bbr3 *b)
{
	b->rate_short = b->in_flight_short = NONE;
}

part void restart_full_pipe(struct bbr3 *b, u64 rate)
{
	b->full_rate = rate;
	b->full_rounds = 0;
	b->full_now = false;
}

part bool is_too_high(u64 lost, u64 in_flight)
{
	return lost > share(in_flight, config.loss_threshold);
}

/* SplitMix64. */
part u64 draw(struct bbr3 *b)
{
	u64 z;

	b->random += 0x9e3779b97f4a7c15ULL;
	z = b->random;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

part void start_down(struct bbr3 *b, const struct connection *c)
{
	b->lost_in_round = false;
	b->rate_latest = b->in_flight_latest = 0;
	b->acked_per_packet = NONE;
	b->cycle_rounds = draw(b) & 1;
	b->wait_ns = WAIT_MIN_NS + draw(b) % WAIT_RANDOM_NS;
	b->cycle_start_ns = c->now_ns;
	b->feedback = STOPPING;
	start_round(b, c->delivered);
	b->phase = DOWN;
}

part void start_refill(struct bbr3 *b, const struct connection *c)
{
	advance_filter(b);
	b->advanced = false;
	forget_short_term(b);
	b->growth = 0;
	b->probe_acked = 0;
	b->precautionary = false;
	b->feedback = REFILLING;
	start_round(b, c->delivered);
	b->phase = REFILL;
}

part void update_signals(struct bbr3 *b, const struct sample *s, const struct connection *c)
{
	b->loss_round_start = false;
	if (!b->rate_sample)
		return;
	b->rate_latest = most(b->rate_latest, b->rate_sample);
	b->in_flight_latest = most(b->in_flight_latest, s->delivered);
	if (s->prior_delivered >= b->loss_round_end) {
		b->loss_round_end = c->delivered;
		b->loss_round_start = true;
	}
}

part void lower_short_term(struct bbr3 *b)
{
	if (b->rate_short == NONE)
		b->rate_short = max_bw(b);
	if (b->in_flight_short == NONE)
		b->in_flight_short =
			most(b->window, b->prior_recovery == LOSS ? b->prior_window : 0);
	b->rate_short = most(share(b->rate_short, config.beta), b->rate_latest);
	b->in_flight_short = most(share(b->in_flight_short, config.beta), b->in_flight_latest);
}

part void adapt_short_term(struct bbr3 *b)
{
	bool probes = b->phase == STARTUP || b->phase == REFILL || b->phase == UP;

	if (!b->loss_round_start)
		return;
	if (b->lost_in_round && !probes)
		lower_short_term(b);
	b->lost_in_round = false;
}

part void save_for_undo(struct bbr3 *b)
{
	if (b->saved)
		return;
	save_window(b);
	b->undo_phase = NO_PHASE;
	b->undo_rate_short = b->rate_short;
	b->undo_in_flight_short = b->in_flight_short;
	b->undo_in_flight_long = b->in_flight_long;
	b->saved = true;
}

/* Consecutive lost packets are one range. */
part void note_range(struct bbr3 *b, const struct loss *l)
{
	u64 end = l->in_flight_at_send + l->delivered_at_send + l->lost_at_send;
	u64 begin = above(end, l->bytes);

	if (!b->loss_ranges || (begin != b->last_end && end != b->last_begin))
		b->loss_ranges++;
	b->last_begin = begin;
	b->last_end = end;
}

part u64 in_flight_at_loss(u64 lost, const struct loss *l)
{
	u64 before = above(l->in_flight_at_send, l->bytes);
	u64 room = above(share(before, config.loss_threshold), above(lost, l->bytes));

	return before + room * UNIT / most(above(UNIT, config.loss_threshold), 1);
}

part void handle_too_high(struct bbr3 *b, u64 in_flight, bool app_limited,
			  const struct connection *c)
{
	b->too_high = true;
	b->samples_probe = false;
	if (!app_limited)
		b->in_flight_long = most(in_flight, share(target_in_flight(b), config.beta));
	if (b->phase == UP) {
		b->undo_phase = UP;
		start_down(b, c);
	}
}

/* ---- startup.rs */

part void check_full_pipe(struct bbr3 *b, bool app_limited)
{
	if (!b->round_start || app_limited || b->full_now)
		return;
	if (b->rate_sample * 4 >= b->full_rate * 5) {
		restart_full_pipe(b, b->rate_sample);
		return;
	}
	b->full_now = ++b->full_rounds >= FLAT_ROUNDS;
	b->full_reached |= b->full_now;
}

part void check_high_loss(struct bbr3 *b, const struct sample *s)
{
	bool round_over = b->loss_round_start && b->prior_recovery == RECOVERY;

	if ((!round_over && config.startup_loss != AT_ONCE) ||
	    b->loss_ranges < config.startup_loss_ranges ||
	    !is_too_high(s->lost_since_send, s->in_flight_at_send))
		return;
	b->undo_phase = STARTUP;
	b->full_now = b->full_reached = true;
	b->in_flight_long = most(bdp(b, max_bw(b)),
				 config.startup_keeps_delivered ? b->in_flight_latest : 0);
}

part void check_startup_done(struct bbr3 *b, const struct sample *s)
{
	if (!b->full_reached)
		check_high_loss(b, s);
	if (b->loss_round_start)
		b->loss_ranges = 0;
	if (b->phase == STARTUP && b->full_reached) {
		b->phase = DRAIN;
		b->drain_start_round = b->rounds;
	}
}

part void check_drain_done(struct bbr3 *b, const struct connection *c)
{
	if (b->phase == DRAIN && (c->in_flight <= in_flight_target(b, b->bw) ||
				  b->rounds - b->drain_start_round > config.drain_rounds))
		start_down(b, c);
}

/* ---- probe_bw.rs */

part void raise_slope(struct bbr3 *b)
{
	b->acked_per_packet = most(b->window >> (b->growth & 63), b->mss);
	b->growth = least(b->growth + 1, SLOPE_MAX);
}

part void start_up(struct bbr3 *b, const struct connection *c)
{
	b->samples_probe = true;
	b->feedback = STARTING;
	start_round(b, c->delivered);
	restart_full_pipe(b, b->rate_sample);
	b->phase = UP;
	raise_slope(b);
}

part bool held_by_long_term(const struct bbr3 *b, const struct connection *c)
{
	return c->window_limited && b->window >= b->in_flight_long;
}

part void raise_long_term(struct bbr3 *b, const struct sample *s, const struct connection *c)
{
	u64 packets;

	if (!held_by_long_term(b, c))
		return;
	b->probe_acked += s->newly_acked;
	if (b->probe_acked >= b->acked_per_packet) {
		packets = b->probe_acked / b->acked_per_packet;
		b->probe_acked -= packets * b->acked_per_packet;
		b->in_flight_long += packets * b->mss;
	}
	if (b->round_start)
		raise_slope(b);
}

/* Ends the feedback of the last probe. Returns whether a new phase has begun. */
part bool end_feedback(struct bbr3 *b, const struct connection *c, bool app_limited)
{
	b->samples_probe = false;
	b->feedback = SILENT;
	if (b->phase < DOWN || b->phase > UP)
		return false;
	if (!app_limited)
		advance_filter(b);
	if (!b->precautionary || b->too_high)
		return false;
	start_refill(b, c);
	return true;
}

/* Returns whether a new phase has begun. */
part bool adapt_long_term(struct bbr3 *b, const struct sample *s, const struct connection *c,
			  bool app_limited)
{
	if (b->round_start) {
		if (b->feedback == STARTING)
			b->feedback = PROBING;
		else if (b->feedback == STOPPING && end_feedback(b, c, app_limited))
			return true;
	}
	if (b->in_flight_long != NONE && !is_too_high(s->lost_since_send, s->in_flight_at_send)) {
		b->in_flight_long = most(b->in_flight_long, s->in_flight_at_send);
		if (b->phase == UP)
			raise_long_term(b, s, c);
	}
	return false;
}

part bool time_to_probe(const struct bbr3 *b, const struct connection *c)
{
	return c->now_ns > b->cycle_start_ns + b->wait_ns || b->cycle_rounds >= ROUNDS_MAX ||
	       (u64)b->cycle_rounds * b->mss >= target_in_flight(b);
}

part bool may_cruise(const struct bbr3 *b, const struct connection *c)
{
	return c->in_flight <= in_flight_with_headroom(b) &&
	       c->in_flight <= in_flight_target(b, max_bw(b));
}

part bool time_to_go_down(struct bbr3 *b, const struct connection *c)
{
	if (b->too_high && c->in_flight >= b->in_flight_long) {
		b->precautionary = true;
		return true;
	}
	if (held_by_long_term(b, c)) {
		restart_full_pipe(b, b->rate_sample);
		return false;
	}
	return b->full_now;
}

part void update_cycle(struct bbr3 *b, const struct sample *s, const struct connection *c,
		       bool app_limited)
{
	if (!b->full_reached || !s->newly_acked || adapt_long_term(b, s, c, app_limited))
		return;
	if ((b->phase == DOWN || b->phase == CRUISE) && time_to_probe(b, c)) {
		start_refill(b, c);
	} else if (b->phase == DOWN && may_cruise(b, c)) {
		b->phase = CRUISE;
	} else if (b->phase == REFILL && b->round_start) {
		start_up(b, c);
	} else if (b->phase == UP && time_to_go_down(b, c)) {
		b->too_high = false;
		start_down(b, c);
	}
}

/* ---- probe_rtt.rs */

part void check_probe_rtt_done(struct bbr3 *b, const struct connection *c)
{
	if (c->now_ns <= b->probe_rtt_done_ns)
		return;
	b->recent_stamp_ns = c->now_ns;
	forget_short_term(b);
	if (b->full_reached) {
		start_down(b, c);
		b->advanced = false;
		b->phase = CRUISE;
	} else {
		b->phase = STARTUP;
	}
	restore_window(b);
}

part void enter_probe_rtt(struct bbr3 *b, const struct connection *c)
{
	save_window(b);
	b->phase = PROBE_RTT;
	b->probe_rtt_done_ns = U64_MAX;
	b->probe_us = config.probe_rtt_window_before ? b->before_us : U32_MAX;
	b->feedback = STOPPING;
	if (b->full_reached)
		advance_filter(b);
	start_round(b, c->delivered);
}

part void hold_probe_rtt(struct bbr3 *b, const struct connection *c)
{
	if (b->probe_rtt_done_ns == U64_MAX) {
		if (c->in_flight <= probe_rtt_window(b)) {
			b->probe_rtt_done_ns = c->now_ns + PROBE_RTT_NS;
			b->probe_rtt_round_done = false;
			start_round(b, c->delivered);
		}
		return;
	}
	b->probe_rtt_round_done |= b->round_start;
	if (b->probe_rtt_round_done)
		check_probe_rtt_done(b, c);
}

part void update_min_rtt(struct bbr3 *b, const struct sample *s, const struct connection *c)
{
	u32 rtt = most(least(s->rtt_us, U32_MAX - 1), 1);

	b->expired = c->now_ns > b->recent_stamp_ns + config.probe_rtt_interval_ns;
	if (s->rtt_us != NO_RTT &&
	    (rtt < b->recent_us || (b->expired && !s->ack_delayed))) {
		b->recent_us = rtt;
		b->recent_stamp_ns = c->now_ns;
	}
	b->before_us = b->min_rtt_us;
	if (b->recent_us < b->min_rtt_us ||
	    (b->recent_us != U32_MAX && c->now_ns > b->min_rtt_stamp_ns + config.min_rtt_filter_ns)) {
		b->min_rtt_us = b->recent_us;
		b->min_rtt_stamp_ns = b->recent_stamp_ns;
	}
	if (b->expired && !b->idle_restart && config.probe_rtt && b->phase != PROBE_RTT)
		enter_probe_rtt(b, c);
	if (b->phase == PROBE_RTT)
		hold_probe_rtt(b, c);
	if (s->delivered > 0)
		b->idle_restart = false;
}

/* ---- functions for a connection */

/* Notes the range of data that PROBE_RTT holds back, for as long as it lasts. */
part void note_held_back(struct bbr3 *b, const struct connection *c)
{
	if (b->phase == PROBE_RTT) {
		if (!b->holding_back)
			b->held_from = c->delivered;
		b->held_to = c->delivered + c->in_flight;
	}
	b->holding_back = b->phase == PROBE_RTT;
}

/* Begins a connection: `b` is all zero, `seed` is random. */
part void bbr3_begin(struct bbr3 *b, const struct connection *c, u64 window, u64 seed)
{
	b->mss = most(c->mss, 1);
	b->window = b->initial_window = most(window, b->mss);
	b->random = seed;
	forget_short_term(b);
	b->in_flight_long = NONE;
	b->undo_phase = NO_PHASE;
	b->acked_per_packet = NONE;
	b->min_rtt_us = b->recent_us = c->min_rtt_us ? c->min_rtt_us : U32_MAX;
	b->before_us = b->probe_us = U32_MAX;
	b->min_rtt_stamp_ns = b->recent_stamp_ns = c->now_ns;
	b->probe_rtt_done_ns = U64_MAX;
	b->held_from = U64_MAX;
	start_round(b, c->delivered);
	restart_interval(b, c->now_ns);
	init_pacing_rate(b, c->srtt_us);
	update_quantum(b);
}

/* Keeps track of recovery from one acknowledgement to the next. */
part void follow_recovery(struct bbr3 *b, u32 recovery)
{
	b->prior_recovery = recovery;
	if (recovery == OPEN || recovery == DISORDER)
		b->saved = false;
}

part void bbr3_on_ack(struct bbr3 *b, const struct sample *s, const struct connection *c)
{
	bool app_limited = s->app_limited || held_back(b, s->prior_delivered);

	b->mss = most(c->mss, 1);
	take_rate(b, s);
	update_signals(b, s, c);
	update_bandwidth(b, s, c, app_limited);
	adapt_short_term(b);
	update_aggregation(b, s, c);
	check_full_pipe(b, app_limited);
	check_startup_done(b, s);
	check_drain_done(b, c);
	update_cycle(b, s, c, app_limited);
	update_min_rtt(b, s, c);
	if (b->loss_round_start) {
		b->rate_latest = b->rate_sample;
		b->in_flight_latest = s->delivered;
	}
	b->bw = least(max_bw(b), b->rate_short);
	follow_recovery(b, c->recovery);
	set_pacing_rate(b, pacing_gain(b), c->srtt_us);
	update_quantum(b);
	set_window(b, s, c);
	note_held_back(b, c);
}

part void bbr3_on_loss(struct bbr3 *b, const struct loss *l, const struct connection *c)
{
	u64 lost = above(c->lost, l->lost_at_send);

	save_for_undo(b);
	if (!b->lost_in_round) {
		b->loss_round_end = c->delivered;
		b->lost_in_round = true;
	}
	note_range(b, l);
	if (b->samples_probe && is_too_high(lost, l->in_flight_at_send))
		handle_too_high(b, in_flight_at_loss(lost, l),
				l->app_limited || held_back(b, l->delivered_at_send), c);
}

/* Sending resumes with nothing in flight. */
part void bbr3_on_restart(struct bbr3 *b, const struct connection *c)
{
	if (!c->app_limited && !held_back(b, c->delivered))
		return;
	b->idle_restart = true;
	restart_interval(b, c->now_ns);
	if (b->phase >= DOWN && b->phase <= UP)
		set_pacing_rate(b, UNIT, c->srtt_us);
	else if (b->phase == PROBE_RTT)
		check_probe_rtt_done(b, c);
	update_quantum(b);
}

part void bbr3_on_recovery_start(struct bbr3 *b)
{
	save_for_undo(b);
}

part void bbr3_on_recovery_end(struct bbr3 *b)
{
	restore_window(b);
	b->saved = false;
}

part void bbr3_on_timeout(struct bbr3 *b, const struct connection *c)
{
	save_for_undo(b);
	b->window = c->in_flight + b->mss;
	b->prior_recovery = LOSS;
}

part void bbr3_on_spurious(struct bbr3 *b, const struct connection *c)
{
	u8 phase = b->undo_phase;

	restore_window(b);
	b->lost_in_round = false;
	restart_full_pipe(b, 0);
	b->rate_short = most(b->rate_short, b->undo_rate_short);
	b->in_flight_short = most(b->in_flight_short, b->undo_in_flight_short);
	b->in_flight_long = most(b->in_flight_long, b->undo_in_flight_long);
	b->saved = false;
	b->undo_phase = NO_PHASE;
	if (phase == STARTUP && b->phase != STARTUP) {
		b->full_reached = false;
		if (b->phase != PROBE_RTT)
			b->phase = STARTUP;
	} else if (phase == UP && b->phase != UP && b->phase != PROBE_RTT) {
		start_refill(b, c);
	}
}

#endif
