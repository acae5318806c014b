/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * BBR version 3: state and inputs.
 *
 * This is the algorithm of crates/knee-cc/src/bbr3, part by part and in the
 * same integer arithmetic. The reasons are explained there; comments here cover
 * only what C or BPF makes different. The code knows neither sockets nor clocks:
 * a sample, a loss or an event and a connection go in, and the state holds the
 * decision. So the same code runs in a connection and over a recording.
 *
 * Units: bytes, bytes per second, microseconds (_us) and nanoseconds (_ns);
 * gains and shares in thousandths.
 */
#ifndef KNEE_BBR3_TYPES_H
#define KNEE_BBR3_TYPES_H

#include "../windowed_max.h"

#define UNIT 1000U
#define NONE U64_MAX	/* no bound */
#define NO_RTT U64_MAX
#define MIN_WINDOW_PACKETS 4

/* The parameters of the same names, as resolved by knee-cc's registry. */
struct bbr3_config {
	u64 extra_acked_limit_us;	/* U64_MAX: no limit */
	u64 probe_rtt_interval_ns, min_rtt_filter_ns;
	u32 startup_gain, drain_gain;
	u32 drain_rounds;		/* U32_MAX: no limit */
	u32 gain_up, gain_down;		/* probe_gains */
	u32 loss_threshold, beta, headroom;
	u32 startup_loss_ranges, startup_keeps_delivered;
	u32 offload_quanta;
	u32 probe_rtt;
	u32 probe_rtt_window_before;	/* probe_rtt_window_from */
	u32 startup_loss;		/* enum startup_loss */
	u32 startup_window_gain;
};

enum startup_loss { ROUND, CONSERVE, AT_ONCE };

/* The defaults; a loader may overwrite them. */
const volatile struct bbr3_config config = {
	.extra_acked_limit_us = U64_MAX,
	.probe_rtt_interval_ns = 5 * NS_PER_S,
	.min_rtt_filter_ns = 10 * NS_PER_S,
	.startup_gain = 2770,
	.drain_gain = 500,
	.drain_rounds = 3,
	.gain_up = 1250,
	.gain_down = 900,
	.loss_threshold = 20,
	.beta = 700,
	.headroom = 150,
	.startup_loss_ranges = 6,
	.startup_keeps_delivered = 1,
	.offload_quanta = 3,
	.probe_rtt = 1,
	.startup_window_gain = 2000,
};

/* Contents of an acknowledgement: the used fields of knee-cc's Sample. */
struct sample {
	u64 delivered;
	u64 prior_delivered;
	u64 interval_us;	/* zero: no valid rate sample */
	u64 rtt_us;		/* or NO_RTT */
	u64 newly_acked;
	u64 in_flight_at_send;
	u64 lost_since_send;
	u32 app_limited;
	u32 ack_delayed;
};

/* A loss: knee-cc's Loss. */
struct loss {
	u64 bytes;
	u64 in_flight_at_send, delivered_at_send, lost_at_send;
	u64 app_limited;
};

/* In the order of enum tcp_ca_state. */
enum recovery { OPEN, DISORDER, WINDOW_REDUCED, RECOVERY, LOSS };

/* Current state of the connection: the used fields of knee-cc's Connection. */
struct connection {
	u64 now_ns;
	u64 in_flight;
	u64 delivered;
	u64 lost;
	u32 mss;
	u32 srtt_us;		/* zero: unknown */
	u32 min_rtt_us;		/* likewise */
	u32 recovery;
	u32 app_limited;
	u32 window_limited;
};

enum phase { STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, PROBE_RTT, NO_PHASE };

/* What acknowledgements reveal about the last probe. */
enum feedback { SILENT, REFILLING, STARTING, PROBING, STOPPING };

struct bbr3 {
	/* The decision: window in bytes, pacing rate in bytes per second. */
	u64 window;
	u64 rate;

	/* User space reads these by their offsets: crates/knee-host/src/bpf/states.rs. */
	u64 bw;
	u32 min_rtt_us;		/* U32_MAX: unknown */
	u8 phase;

	u8 prior_recovery;
	bool idle_restart;
	bool has_rtt;
	u64 initial_window;
	u64 prior_window;
	u64 quantum;
	u32 mss;

	/* The model. */
	u64 rate_short, in_flight_short, in_flight_long;	/* or NONE */

	/* Bandwidth and rounds. */
	u64 rate_sample;
	u64 cycles[2];		/* largest rate of the last cycle and of this one */
	u64 round_end;
	u32 rounds;
	bool round_start;

	/* Deliveries of the last round. */
	bool loss_round_start, lost_in_round;
	u64 rate_latest, in_flight_latest;
	u64 loss_round_end;

	/* Losses of one round, as ranges of sent data. */
	u64 last_begin, last_end;
	u32 loss_ranges;

	/* State restored after a spurious recovery. */
	u8 undo_phase;		/* or NO_PHASE */
	bool saved;
	u64 undo_rate_short, undo_in_flight_short, undo_in_flight_long;

	/* The pipe is full. */
	bool full_now, full_reached;
	u8 full_rounds;
	u64 full_rate;
	u32 drain_start_round;

	/* The cycle of PROBE_BW. */
	u8 feedback, growth;
	bool samples_probe, too_high, precautionary, advanced;
	u32 cycle_rounds;
	u64 cycle_start_ns, wait_ns;
	u64 acked_per_packet;	/* or NONE */
	u64 probe_acked;
	u64 random;

	/* Aggregated acknowledgements. */
	u64 interval_start_ns, interval_acked;
	struct max_entry extra[3];

	/* Minimum RTT and PROBE_RTT. */
	u32 recent_us;		/* U32_MAX: unknown */
	u32 before_us, probe_us;	/* of min_rtt_us, for the window of PROBE_RTT */
	u64 min_rtt_stamp_ns, recent_stamp_ns;
	u64 probe_rtt_done_ns;	/* U64_MAX: in flight is not down yet */
	bool expired, probe_rtt_round_done;

	/* Data that PROBE_RTT held back, by the delivered count at sending. */
	bool holding_back;
	u64 held_from, held_to;
};

part u64 floor_of(const struct bbr3 *b)
{
	return (u64)MIN_WINDOW_PACKETS * b->mss;
}

/* Thousandths of a value that is not NONE. */
part u64 share(u64 whole, u32 thousandths)
{
	return whole * thousandths / UNIT;
}

/* Bytes that a rate delivers in a time of at most an hour. */
part u64 bytes_in(u64 rate, u64 us)
{
	us = least(us, U32_MAX);
	/* Above 4.3 GB/s the product might need more than 64 bits. */
	return rate <= U32_MAX ? rate * us / 1000000 : rate / 1000 * us / 1000;
}

part u64 us_since(u64 now_ns, u64 then_ns)
{
	return above(now_ns, then_ns) / NS_PER_US;
}

part u64 max_bw(const struct bbr3 *b)
{
	return most(b->cycles[0], b->cycles[1]);
}

/* Whether data sent at that delivered count was held back by PROBE_RTT. */
part bool held_back(const struct bbr3 *b, u64 delivered_at_send)
{
	return b->held_from <= delivered_at_send && delivered_at_send <= b->held_to;
}

#endif
