/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Outputs: pacing.rs, window.rs, and the window of the change shrink_window,
 * low_delay.rs.
 */
#ifndef KNEE_BBR_OUTPUT_H
#define KNEE_BBR_OUTPUT_H

#include "estimate.h"

#define MARGIN_PERCENT 99
#define ASSUMED_RTT_US 1000
#define SINGLE_PACKET_RATE 150000
#define LARGEST_BURST (65536 - 1 - 320)
#define LARGEST_GOAL 127
#define UP 0		/* phases of the gain cycle */
#define DOWN 1
#define CRUISE 2
#define PHASES 8

#define ALLOWANCE_PACKETS 4
#define RETURN_PACKETS 4
#define EMPTY_QUEUE_FACTOR 4
#define EMPTY_QUEUE 2
#define LONGEST_RTT_US 100000000
#define SETTLING_ROUNDS 8
#define NEAR_PROBE_RTT_NS (500 * NS_PER_MS)
#define FRACTION 10
#define MIN_RTT_WINDOW_NS (10 * NS_PER_S)

/* ---- pacing */

part u64 paced_bytes_per_second(const struct bbr *b, u32 bw, u32 gain)
{
	u64 rate = (u64)bw * b->mss * gain >> 8;

	if (rate > U64_MAX / (10000 * MARGIN_PERCENT))
		return U64_MAX >> RATE_SHIFT;
	return rate * (10000 * MARGIN_PERCENT) >> RATE_SHIFT;
}

part void put_rate(struct bbr *b, u64 rate)
{
	u32 smallest = rate < SINGLE_PACKET_RATE ? 1 : 2;

	b->rate = most(rate, b->mss);
	b->burst_packets = least(b->rate >> 10, LARGEST_BURST) / b->mss;
	b->burst_packets = least(most(b->burst_packets, smallest), LARGEST_GOAL);
}

part void init_pacing_rate(struct bbr *b, u32 srtt_us)
{
	u64 packets = least(b->window / b->mss, 1 << 24);
	u64 bw = (packets << RATE_SHIFT) / (srtt_us ? srtt_us : ASSUMED_RTT_US);

	b->has_rtt = srtt_us > 0;
	put_rate(b, paced_bytes_per_second(b, least(bw, U32_MAX), HIGH_GAIN));
	b->rate_computed = false;
}

part void set_pacing_rate(struct bbr *b, u32 bw, u32 gain, u32 srtt_us)
{
	u64 rate;

	if (!b->has_rtt && srtt_us > 0)
		init_pacing_rate(b, srtt_us);
	if (b->rate_computed && b->rate_bw == bw && b->rate_gain == gain)
		return;
	rate = paced_bytes_per_second(b, bw, gain);
	if (b->full_reached || rate > b->rate) {
		put_rate(b, rate);
		b->rate_computed = true;
		b->rate_bw = bw;
		b->rate_gain = gain;
	}
}

/* ---- in flight */

/* ceil(gain x bw x min_rtt), in packets. The product has up to 74 bits, so the
 * gain is applied separately to its upper part and to its last byte. */
part u64 bdp_packets(const struct bbr *b, u32 bw, u32 gain)
{
	u64 pipe = (u64)bw * b->min_rtt_us, scaled;

	if (b->min_rtt_us == U32_MAX)
		return INITIAL_PACKETS;
	scaled = (pipe >> 8) * gain + ((pipe & 255) * gain >> 8);
	return (scaled + (1 << RATE_SHIFT) - 1) >> RATE_SHIFT;
}

part bool probing_up(const struct bbr *b)
{
	return b->mode == PROBE_BW && b->phase == UP;
}

part u64 with_quantisation(const struct bbr *b, u64 packets)
{
	u64 even = (packets + 3 * b->burst_packets + 1) & ~1ULL;

	if (!config.allow_for_bursts)
		return packets;
	return probing_up(b) ? even + 2 : even;
}

part u64 in_flight_target(const struct bbr *b, u32 bw, u32 gain)
{
	return with_quantisation(b, bdp_packets(b, bw, gain)) * b->mss;
}

/* The estimate that pacing uses. */
part u32 paced_bw(const struct bbr *b)
{
	if (b->mode == PROBE_BW && !b->lt_in_use)
		return least(b->best[0].value, b->ceiling);
	return bw_of(b);
}

/* Bytes in the network at the time when pacing allows the next packet. */
part u64 in_network(const struct bbr *b, u64 in_flight, const struct connection *c)
{
	u64 delivered = packets_in(bw_of(b), us_since(c->next_departure_ns, c->now_ns)) * b->mss;
	u64 leaving = b->pacing_gain > UNIT ? (u64)b->burst_packets * b->mss : 0;

	return above(in_flight + leaving, delivered);
}

/* ---- the window of shrink_window */

part u64 shrunk_window(const struct bbr *b, u32 bw)
{
	u64 gain = most(probing_up(b) ? config.gain_up : UNIT, b->window_gain);
	u64 allowance = most(most(2 * b->burst_packets, ALLOWANCE_PACKETS),
			     aggregation_packets(b, bw));
	u64 pipe = (bdp_packets(b, bw, gain) + allowance) * b->mss;
	u64 roomy = probing_up(b) ? in_flight_target(b, bw, gain) : 0;

	return above(most(pipe, roomy), b->shrink >> FRACTION);
}

part u64 queueing_us(const struct bbr *b, u64 rtt_us)
{
	return above(rtt_us, b->min_rtt_us);
}

part void take_rtt(struct bbr *b, u64 rtt_us)
{
	u32 us = least(rtt_us, LONGEST_RTT_US), mean = b->rtt_mean / 8;
	u32 error = us > mean ? us - mean : mean - us;

	if (b->rtt_mean == 0) {
		b->rtt_mean = us * 8;
		return;
	}
	b->rtt_deviation = b->rtt_deviation - b->rtt_deviation / 4 + error;
	b->rtt_mean = b->rtt_mean - b->rtt_mean / 8 + us;
}

part bool may_judge_queue(const struct bbr *b, u64 now_ns)
{
	return b->mode == PROBE_BW && b->rounds - b->settled_round >= SETTLING_ROUNDS &&
	       now_ns + NEAR_PROBE_RTT_NS <= b->min_rtt_stamp_ns + MIN_RTT_WINDOW_NS &&
	       b->rtt_deviation / 4 * 10 <= b->rtt_mean / 8 * 3; /* the RTT is steady */
}

/* bytes * acked / per_round, times 2^10. The bounds, 1 GB in the queue and 8 MB
 * acknowledged at once, keep the product within 64 bits. */
part u64 share_of_round(u64 bytes, u64 acked, u64 per_round)
{
	return ((least(bytes, 1 << 30) * least(acked, 1 << 23)) << FRACTION) / per_round;
}

/* One acknowledgement's share of a round trip's change. */
part void track_shrink(struct bbr *b, u32 bw, u64 queueing, u64 acked)
{
	u64 per_round = most(b->window, b->mss) * config.shrink_rounds;
	u64 bound = config.delay_lower_bound_us, bytes, limit;
	u64 worn_off = share_of_round(b->shrink >> FRACTION, acked, per_round);

	b->shrink = above(b->shrink, worn_off);
	if (queueing > bound) {
		bytes = packets_in(bw, queueing << 4) * b->mss >> 4;
		limit = (bdp_packets(b, bw, UNIT) * b->mss / 2) << FRACTION;
		b->shrink = least(b->shrink + share_of_round(bytes, acked, per_round), limit);
	} else {
		bytes = (u64)RETURN_PACKETS * b->mss;
		if (queueing < bound / EMPTY_QUEUE)
			bytes *= EMPTY_QUEUE_FACTOR;
		b->shrink = above(b->shrink, share_of_round(bytes, acked, per_round));
	}
}

part u64 low_delay_window(struct bbr *b, u32 bw, const struct sample *s, u64 now_ns)
{
	if (s->rtt_us != NO_RTT) {
		take_rtt(b, s->rtt_us);
		if (may_judge_queue(b, now_ns))
			track_shrink(b, bw, queueing_us(b, s->rtt_us), s->newly_acked);
	}
	return shrunk_window(b, bw);
}

/* ---- the window */

part bool in_recovery(u8 state)
{
	return state == RECOVERY || state == LOSS;
}

part void save_window(struct bbr *b)
{
	bool cut = in_recovery(b->prior_recovery) || b->mode == PROBE_RTT;

	b->prior_window = cut ? most(b->prior_window, b->window) : b->window;
}

part bool follow_recovery(struct bbr *b, const struct sample *s, const struct connection *c)
{
	u8 before = b->prior_recovery, now = c->recovery;
	u64 conserved = c->in_flight + s->newly_acked;

	if (s->newly_lost > 0)
		b->window = most(above(b->window, s->newly_lost), b->mss);
	if (now == RECOVERY && before != RECOVERY) {
		b->packet_conservation = true;
		b->round_end = c->delivered;
		b->window = conserved;
	} else if (in_recovery(before) && !in_recovery(now)) {
		b->window = most(b->window, b->prior_window);
		b->packet_conservation = false;
	}
	b->prior_recovery = now;
	if (b->packet_conservation)
		b->window = most(b->window, conserved);
	return b->packet_conservation;
}

part u64 target_window(struct bbr *b, u32 bw, const struct sample *s, const struct connection *c)
{
	if (config.shrink_window && b->full_reached)
		return low_delay_window(b, bw, s, c->now_ns);
	return with_quantisation(b, bdp_packets(b, bw, b->window_gain) +
					    aggregation_packets(b, bw)) * b->mss;
}

part u64 probe_rtt_window(struct bbr *b, u32 bw)
{
	u64 packets = config.probe_rtt_gain ? bdp_packets(b, bw, config.probe_rtt_gain) : 0;

	return most(packets, MIN_WINDOW_PACKETS) * b->mss;
}

part void set_window(struct bbr *b, u32 bw, const struct sample *s, const struct connection *c)
{
	u64 floor = (u64)MIN_WINDOW_PACKETS * b->mss, target;

	if (s->newly_acked > 0 && !follow_recovery(b, s, c)) {
		target = target_window(b, bw, s, c);
		if (b->full_reached)
			b->window = least(b->window + s->newly_acked, target);
		else if (b->window < target || c->delivered < (u64)INITIAL_PACKETS * b->mss)
			b->window += s->newly_acked;
		b->window = most(b->window, floor);
	}
	if (b->mode == PROBE_RTT)
		b->window = least(b->window, probe_rtt_window(b, bw));
}

#endif
