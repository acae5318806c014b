/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * BBR version 1 and its low-delay changes: state and inputs.
 *
 * This is the algorithm of crates/knee-cc/src/bbr, part by part and in the same
 * integer arithmetic. The reasons are explained there; comments here cover only
 * what C or BPF makes different. The code knows neither sockets nor clocks: a
 * sample and a connection go in, and the state holds the decision. So the same
 * code runs in a connection and over a recorded file.
 *
 * Units: bytes, microseconds (_us) and nanoseconds (_ns). Gains are in units of
 * 1/256, bandwidth (bw) in packets per microsecond times 2^24.
 *
 * Left out: on_event's PathReset and Penalised, which a kernel never sends.
 */
#ifndef KNEE_BBR_TYPES_H
#define KNEE_BBR_TYPES_H

#include "../windowed_max.h"

#define UNIT 256U		     /* a gain of one */
#define HIGH_GAIN (UNIT * 2885 / 1000 + 1) /* 2/ln 2 */
#define DRAIN_GAIN (UNIT * 1000 / 2885)
#define MIN_WINDOW_PACKETS 4
#define INITIAL_PACKETS 10
#define RATE_SHIFT 24

/* The parameters of the same names, as resolved by knee-cc's registry. */
struct bbr_config {
	u64 max_cruise_ns;	  /* U64_MAX: no limit */
	u64 delay_lower_bound_us;
	u32 shrink_rounds;	  /* cwnd_pace */
	u32 gain_up, gain_down;	  /* probe_gains */
	u32 window_gain;
	u8 drain_to_target;
	u8 probe_up_exit_early;
	u8 shrink_window;
	u8 keep_bw_over_probe_rtt;
	u8 detect_policers;
	u8 allow_for_aggregation;
	u8 allow_for_bursts;
	u8 probe_rtt;
	u32 bandwidth_window;	  /* rounds */
	u32 probe_loss_gain;
	u32 probe_rtt_gain;	  /* 0: four packets */
	u32 probe_rtt_exit_early;
};

/* Values of the preset "bbr-low-delay"; a loader may overwrite them. */
const volatile struct bbr_config config = {
	.max_cruise_ns = 400 * NS_PER_MS,
	.delay_lower_bound_us = 10000,
	.shrink_rounds = 30,
	.gain_up = 307,
	.gain_down = 205,
	.window_gain = UNIT,
	.drain_to_target = 1,
	.probe_up_exit_early = 1,
	.shrink_window = 1,
	.keep_bw_over_probe_rtt = 1,
	.detect_policers = 1,
	.allow_for_aggregation = 1,
	.allow_for_bursts = 1,
	.probe_rtt = 1,
	.bandwidth_window = 10,
	.probe_loss_gain = UNIT,
	.probe_rtt_exit_early = 1,
};

#define NO_RTT U64_MAX

/* Contents of an acknowledgement: the used fields of knee-cc's Sample. */
struct sample {
	u64 delivered;
	u64 prior_delivered;
	u64 interval_us;	/* zero: no valid rate sample */
	u64 rtt_us;		/* or NO_RTT */
	u64 newly_acked;
	u64 newly_lost;
	u64 prior_in_flight;
	u32 app_limited;
	u32 ack_delayed;
};

/* In the order of enum tcp_ca_state. */
enum recovery { OPEN, DISORDER, WINDOW_REDUCED, RECOVERY, LOSS };

/* Current state of the connection: the used fields of knee-cc's Connection. */
struct connection {
	u64 now_ns;
	u64 next_departure_ns;
	u64 in_flight;
	u64 delivered;
	u64 lost;
	u32 mss;
	u32 srtt_us;		/* zero: unknown */
	u32 min_rtt_us;		/* likewise */
	u32 recovery;
	u32 app_limited;
	u32 unused;
};

enum mode { STARTUP, DRAIN, PROBE_BW, PROBE_RTT };

struct bbr {
	/* The decision: window in bytes, pacing rate in bytes per second. */
	u64 window;
	u64 rate;
	u64 threshold;		/* U64_MAX: none */

	u64 prior_window;
	u64 delivered_at_ns;	/* time of the last delivery */
	u32 mss;
	u32 pacing_gain, window_gain;
	u8 mode;
	u8 prior_recovery;
	bool packet_conservation;
	bool idle_restart;

	/* Bandwidth and rounds. */
	bool round_start;
	struct max_entry best[3];
	u32 kept_bw;		/* largest sample since PROBE_RTT, or kept over it */
	u32 rounds;
	u64 round_end;

	/* Policers. */
	u32 lt_bw;
	bool lt_in_use, lt_sampling;
	u8 lt_rounds;
	u64 lt_start_ns, lt_start_delivered, lt_start_lost;

	/* Aggregated acknowledgements. */
	u64 epoch_start_ns, epoch_acked;
	u64 excess[2];
	u8 excess_current, excess_rounds;

	/* The pipe is full. */
	bool full_reached;
	u8 full_rounds;
	u32 full_bw;

	/* Gain cycle. */
	u8 phase;
	u64 phase_start_ns, cruise_start_ns;
	u64 probe_begin, probe_end;	/* delivered; U64_MAX while it lasts */
	u32 probe_from;			/* estimate; zero: it has lost packets */
	u32 ceiling;			/* U32_MAX: none */
	u64 random;

	/* Minimum RTT and PROBE_RTT. */
	u32 min_rtt_us;		/* U32_MAX: unknown */
	u64 min_rtt_stamp_ns;
	u64 probe_rtt_done_ns;	/* U64_MAX: its window not reached yet */
	u64 limited_from, limited_to;
	bool probe_rtt_round_done;

	/* Pacing. */
	bool has_rtt;
	bool rate_computed;	/* for these: */
	u32 rate_bw, rate_gain;
	u32 burst_packets;

	/* shrink_window. */
	u64 shrink;		/* bytes times 2^10 */
	u32 settled_round;
	u32 rtt_mean;		/* times 8 */
	u32 rtt_deviation;	/* times 4 */
};

/* Microseconds from `then` to `now`. */
part u64 us_since(u64 now_ns, u64 then_ns)
{
	return above(now_ns, then_ns) / NS_PER_US;
}

/* The estimate in use: the policer's rate if one was found. */
part u32 bw_of(const struct bbr *b)
{
	return b->lt_in_use ? b->lt_bw : b->best[0].value;
}

/* Packets that `bw` delivers in that many microseconds. */
part u64 packets_in(u32 bw, u64 us)
{
	if (us > U32_MAX)	/* an hour: more than 64 bits would hold */
		us = U32_MAX;
	return bw * us >> RATE_SHIFT;
}

/* Converts a rate in packets to another packet size. */
part u32 rescaled(u32 bw, u64 old_mss, u64 new_mss)
{
	return least(bw * old_mss / new_mss, U32_MAX);
}

#endif
