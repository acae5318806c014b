/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Estimates: bandwidth.rs with filter.rs, long_term.rs (policers),
 * aggregation.rs.
 */
#ifndef KNEE_BBR_ESTIMATE_H
#define KNEE_BBR_ESTIMATE_H

#include "types.h"

#define INTERVAL_ROUNDS 4
#define LOSS_THRESHOLD 50	/* 20 %, in 1/256 */
#define SAME_RATIO (UNIT / 8)
#define SAME_DIFFERENCE 500	/* bytes per second */
#define USE_ROUNDS 48

#define HALF_ROUNDS 5
#define LARGEST_EXCESS_US 100000
#define LARGEST_EPOCH_PACKETS (1ULL << 20)

part void enter_probe_bw(struct bbr *b, u64 delivered);
part u64 paced_bytes_per_second(const struct bbr *b, u32 bw, u32 gain);

/* Change keep_bw_over_probe_rtt. */
part void restore_bw(struct bbr *b)
{
	if (b->kept_bw >= b->best[0].value)
		reset_max(b->best, b->rounds, b->kept_bw);
	b->kept_bw = 0;
}

/* ---- policers */

part void begin_interval(struct bbr *b, const struct connection *c)
{
	b->lt_start_ns = b->delivered_at_ns;
	b->lt_start_delivered = c->delivered;
	b->lt_start_lost = c->lost;
	b->lt_rounds = 0;
}

part void reset_long_term(struct bbr *b, const struct connection *c)
{
	b->lt_bw = 0;
	b->lt_in_use = false;
	b->lt_sampling = false;
	begin_interval(b, c);
}

part bool same_rate(const struct bbr *b, u32 bw, u32 last)
{
	u32 difference = bw > last ? bw - last : last - bw;

	return (u64)difference * UNIT <= (u64)SAME_RATIO * last ||
	       paced_bytes_per_second(b, difference, UNIT) <= SAME_DIFFERENCE;
}

part void judge_interval(struct bbr *b, u32 bw, const struct connection *c)
{
	if (b->lt_bw > 0 && same_rate(b, bw, b->lt_bw)) {
		b->lt_bw = ((u64)bw + b->lt_bw) / 2;
		b->lt_in_use = true;
		b->lt_rounds = 0;
		b->pacing_gain = UNIT;
		return;
	}
	b->lt_bw = bw;
	begin_interval(b, c);
}

part void end_interval(struct bbr *b, const struct connection *c)
{
	u64 lost = above(c->lost, b->lt_start_lost);
	u64 delivered = above(c->delivered, b->lt_start_delivered);
	u64 elapsed_ms = above(b->delivered_at_ns, b->lt_start_ns) / NS_PER_MS;

	if (delivered == 0 || lost << 8 < LOSS_THRESHOLD * delivered)
		return;
	if (elapsed_ms == 0)
		return;
	/* A terabyte in one interval is not the work of a policer; below that, 64 bits
	 * suffice. */
	delivered = least(delivered, (1ULL << 40) - 1);
	judge_interval(b, least((delivered << RATE_SHIFT) / (elapsed_ms * 1000 * b->mss), U32_MAX),
		       c);
}

part void extend_interval(struct bbr *b, const struct connection *c, u64 newly_lost,
			  bool app_limited)
{
	if (!b->lt_sampling) {
		begin_interval(b, c);
		b->lt_sampling = true;
	}
	if (app_limited) {
		reset_long_term(b, c);
		return;
	}
	if (b->round_start)
		b->lt_rounds++;
	if (b->lt_rounds < INTERVAL_ROUNDS)
		return;
	if (b->lt_rounds > 4 * INTERVAL_ROUNDS)
		reset_long_term(b, c);
	else if (newly_lost > 0)
		end_interval(b, c);
}

part void sample_long_term(struct bbr *b, const struct connection *c, u64 newly_lost,
			   bool app_limited)
{
	if (!config.detect_policers)
		return;
	if (!b->lt_in_use) {
		if (b->lt_sampling || newly_lost > 0)
			extend_interval(b, c, newly_lost, app_limited);
		return;
	}
	if (b->mode == PROBE_BW && b->round_start && ++b->lt_rounds >= USE_ROUNDS) {
		reset_long_term(b, c);
		enter_probe_bw(b, c->delivered);
	}
}

/* ---- bandwidth */

part void update_bandwidth(struct bbr *b, const struct sample *s, const struct connection *c,
			   bool app_limited)
{
	u64 scaled, bw;

	b->round_start = false;
	if (s->interval_us == 0)
		return;
	if (s->prior_delivered >= b->round_end) {
		b->round_end = c->delivered;
		b->rounds++;
		b->round_start = true;
		b->packet_conservation = false;
	}
	sample_long_term(b, c, s->newly_lost, app_limited);
	scaled = least(s->delivered, (1ULL << 40) - 1) << RATE_SHIFT;
	bw = least(scaled / (s->interval_us * b->mss), U32_MAX);
	if (!app_limited || bw >= b->best[0].value) {
		if (b->mode != PROBE_RTT)
			b->kept_bw = most(b->kept_bw, bw);
		update_max(b->best, config.bandwidth_window, b->rounds, bw);
	}
}

/* ---- aggregated acknowledgements */

part void restart_epoch(struct bbr *b, u64 now_ns)
{
	b->epoch_start_ns = now_ns;
	b->epoch_acked = 0;
}

/* excess[current], without an index that the verifier would have to bound. */
part u64 *current_excess(struct bbr *b)
{
	return b->excess_current ? &b->excess[1] : &b->excess[0];
}

part void update_aggregation(struct bbr *b, const struct sample *s)
{
	u64 expected, excess;

	if (s->newly_acked == 0 || s->interval_us == 0)
		return;
	if (b->round_start && ++b->excess_rounds >= HALF_ROUNDS) {
		b->excess_rounds = 0;
		b->excess_current ^= 1;
		*current_excess(b) = 0;
	}
	expected = packets_in(bw_of(b), us_since(b->delivered_at_ns, b->epoch_start_ns)) * b->mss;
	if (b->epoch_acked <= expected ||
	    b->epoch_acked + s->newly_acked >= LARGEST_EPOCH_PACKETS * b->mss) {
		restart_epoch(b, b->delivered_at_ns);
		expected = 0;
	}
	b->epoch_acked += s->newly_acked;
	excess = least(b->epoch_acked - expected, b->window);
	if (excess > *current_excess(b))
		*current_excess(b) = excess;
}

part u64 aggregation_packets(const struct bbr *b, u32 bw)
{
	u64 packets = most(b->excess[0], b->excess[1]) / b->mss;

	if (!b->full_reached || !config.allow_for_aggregation)
		return 0;
	return least(least(packets, LARGEST_EPOCH_PACKETS), packets_in(bw, LARGEST_EXCESS_US));
}

#endif
