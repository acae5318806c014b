// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The controller "bbr3" of crates/knee-cc in the Linux kernel: connects bbr3/
 * to sockets.
 *
 * Needs Linux 6.10 or later (the arguments of cong_control) with BTF. Only the
 * used fields of the kernel's structures are declared; their offsets are
 * relocated on loading (CO-RE). The state is in the socket's own storage.
 *
 * The kernel counts packets, the algorithm bytes: a packet is mss_cache bytes.
 *
 * For each packet, the draft needs the bytes in flight and lost when it was
 * sent, and for each loss the packet that was lost. A stock kernel's rate
 * sample has neither. In their place:
 *
 * - `history` remembers 128 sending times over the data in flight, identified
 *   by the delivered count, which the rate sample does report for the sampled
 *   packet. Bytes in flight are those before the next acknowledgement, so after
 *   the last packet sent in between. Both are off by what was sent and lost
 *   within 1/128 of the data in flight, or within one acknowledgement.
 * - What an acknowledgement, or a timer before it, shows to be lost counts as
 *   one range that was sent with the sampled packet. So start-up's six ranges
 *   are six acknowledgements with losses, as in Google's branch v3.
 * - What only an expired timer declares lost counts as sent at the last
 *   acknowledgement.
 *
 * tests/kernel/bbr3.rs of knee-kernel measures the effect.
 */
#include "bbr3/bbr3.h"

/* From <linux/bpf.h>. */
enum { BPF_MAP_TYPE_SK_STORAGE = 24, BPF_F_NO_PREALLOC = 1, BPF_SK_STORAGE_GET_F_CREATE = 1 };

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define INFINITE_THRESHOLD 0x7fffffff
#define PACING_NONE 0
#define PACING_NEEDED 1
enum { EVENT_TX_START = 0 };	/* enum tcp_ca_event */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
};

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
};

struct minmax_sample {
	u32 t, v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	u64 tcp_clock_cache;
	u32 mss_cache;
	u32 srtt_us;		/* times 8 */
	struct minmax rtt_min;
	u32 packets_out, sacked_out, lost_out, retrans_out;
	u32 delivered, lost;
	u32 app_limited;
	u32 snd_cwnd, snd_cwnd_clamp, snd_ssthresh;
	u8 is_cwnd_limited : 1;
};

struct rate_sample {
	u32 prior_delivered;
	s32 delivered;
	long interval_us;
	long rtt_us;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
	bool is_ack_delayed;
};

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, int event);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

#pragma clang attribute pop

/* A power of two, so that a mask bounds the index. */
#define MOMENTS 128

/* State at a sending time; packets. */
struct moment {
	u32 delivered, lost, in_flight;
};

/* A connection: the algorithm, the kernel's counters extended beyond 32 bits,
 * and the state at recent sending times. */
struct flow {
	struct bbr3 bbr3;
	u64 delivered, lost;
	u32 delivered_packets, lost_packets;
	u32 told_packets;	/* lost packets reported so far */
	u32 shown_window;	/* in packets, as last written */
	u32 newest;		/* in history */
	struct moment history[MOMENTS];
};
_Static_assert(__builtin_offsetof(struct flow, bbr3.bw) == 16, "as in crates/knee-host/src/bpf/states.rs");
_Static_assert(__builtin_offsetof(struct flow, bbr3.min_rtt_us) == 24, "as there");
_Static_assert(__builtin_offsetof(struct flow, bbr3.phase) == 28, "as there");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} flows SEC(".maps");

part u32 in_flight_packets(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

/* ---- sending times */

part struct moment *moment(struct flow *f, u32 index)
{
	return &f->history[index & (MOMENTS - 1)];
}

/* Notes the packets in flight after sending since the newest moment. */
part void note_sent(struct flow *f, u32 in_flight)
{
	moment(f, f->newest)->in_flight = in_flight;
}

/* Notes the delivered and lost counts at which packets are sent from now on. */
part void note_moment(struct flow *f, const struct tcp_sock *tp)
{
	u32 in_flight = in_flight_packets(tp);
	u32 passed = tp->delivered - moment(f, f->newest)->delivered;
	struct moment *next;

	if (passed == 0 || passed < in_flight / MOMENTS)
		return;
	f->newest = (f->newest + 1) & (MOMENTS - 1);
	next = moment(f, f->newest);
	next->delivered = tp->delivered;
	next->lost = tp->lost;
	next->in_flight = in_flight;
}

/* Returns the moment at which packets with that delivered count were sent: by
 * bisection, the newest that does not exceed it, or the oldest if all do. */
part struct moment moment_of(struct flow *f, u32 delivered)
{
	u32 age = 0, step;

	/* From `newest` + 1 on, the moments are in order of decreasing age. */
#pragma unroll
	for (step = MOMENTS / 2; step > 0; step /= 2) {
		/* Whether all of the next `step` moments are too young. */
		struct moment *last = moment(f, f->newest - (age + step - 1));

		if ((s32)(delivered - last->delivered) < 0)
			age += step;
	}
	return *moment(f, f->newest - age);
}

/* ---- between the socket and the algorithm */

/* Fills `c`, and adopts changes by the kernel itself. */
part void observe(struct sock *sk, struct flow *f, struct connection *c)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	u32 mss = tp->mss_cache ? tp->mss_cache : 1, min_rtt_us = tp->rtt_min.s[0].v;

	f->delivered += (u64)(tp->delivered - f->delivered_packets) * mss;
	f->delivered_packets = tp->delivered;
	f->lost += (u64)(tp->lost - f->lost_packets) * mss;
	f->lost_packets = tp->lost;
	if (tp->snd_cwnd != f->shown_window) {
		f->shown_window = tp->snd_cwnd;
		f->bbr3.window = (u64)tp->snd_cwnd * mss;
	}
	c->now_ns = tp->tcp_clock_cache;
	c->in_flight = (u64)in_flight_packets(tp) * mss;
	c->delivered = f->delivered;
	c->lost = f->lost;
	c->mss = mss;
	c->srtt_us = tp->srtt_us >> 3;
	c->min_rtt_us = min_rtt_us == U32_MAX ? 0 : min_rtt_us;
	c->recovery = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	c->app_limited = tp->app_limited != 0;
	c->window_limited = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
}

/* Writes the decision to the socket. */
part void apply(struct sock *sk, struct flow *f)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct bbr3 *b = &f->bbr3;
	u32 mss = b->mss ? b->mss : 1;
	u32 window = most(least(b->window / mss, tp->snd_cwnd_clamp), 1);

	tp->snd_cwnd = window;
	f->shown_window = window;
	sk->sk_pacing_rate = least(b->rate, sk->sk_max_pacing_rate);
}

part struct flow *flow_of(struct sock *sk)
{
	return bpf_sk_storage_get(&flows, sk, 0, 0);
}

/* Returns the value of a counter in bytes when the kernel's was `then`. */
part u64 back(u64 bytes, u32 now, u32 then, u32 mss)
{
	return above(bytes, (u64)(now - then) * mss);
}

/* Reports losses since the last call, as sent at `sent`. */
part void tell_losses(struct flow *f, const struct tcp_sock *tp, const struct moment *sent,
		      bool app_limited, const struct connection *c)
{
	struct loss l = {
		.bytes = (u64)(tp->lost - f->told_packets) * c->mss,
		.in_flight_at_send = (u64)sent->in_flight * c->mss,
		.delivered_at_send = back(c->delivered, tp->delivered, sent->delivered, c->mss),
		.lost_at_send = back(c->lost, tp->lost, sent->lost, c->mss),
		.app_limited = app_limited,
	};

	if (tp->lost == f->told_packets)
		return;
	f->told_packets = tp->lost;
	bbr3_on_loss(&f->bbr3, &l, c);
}

part void begin(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct connection c;
	u64 upper = bpf_get_prandom_u32();

	if (!f)			/* out of memory: tried again by the next ACK */
		return;
	/* All zero initially: a socket's storage is removed with its controller. */
	f->delivered_packets = tp->delivered;
	f->lost_packets = f->told_packets = tp->lost;
	f->history[0].delivered = tp->delivered;
	f->history[0].lost = tp->lost;
	observe(sk, f, &c);
	bbr3_begin(&f->bbr3, &c, f->bbr3.window, upper << 32 | bpf_get_prandom_u32());
	tp->snd_ssthresh = INFINITE_THRESHOLD;
	apply(sk, f);
}

SEC("struct_ops")
void BPF_PROG(knee_init, struct sock *sk)
{
	begin(sk);
	/* Unless the queueing discipline fq already paces. */
	__sync_val_compare_and_swap(&sk->sk_pacing_status, PACING_NONE, PACING_NEEDED);
}

SEC("struct_ops")
void BPF_PROG(knee_release, struct sock *sk)
{
	bpf_sk_storage_delete(&flows, sk);
}

SEC("struct_ops")
void BPF_PROG(knee_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = flow_of(sk);
	struct connection c;
	struct moment sent;
	struct sample s;
	bool valid = rs->delivered >= 0 && rs->interval_us > 0;

	if (!f) {
		begin(sk);
		return;
	}
	observe(sk, f, &c);
	note_sent(f, rs->prior_in_flight);
	sent = moment_of(f, rs->prior_delivered);
	tell_losses(f, tp, &sent, rs->is_app_limited, &c);
	s.delivered = rs->delivered > 0 ? (u64)rs->delivered * c.mss : 0;
	s.prior_delivered = back(c.delivered, tp->delivered, rs->prior_delivered, c.mss);
	s.interval_us = valid ? rs->interval_us : 0;
	s.rtt_us = rs->rtt_us >= 0 ? rs->rtt_us : NO_RTT;
	s.newly_acked = (u64)rs->acked_sacked * c.mss;
	s.in_flight_at_send = (u64)sent.in_flight * c.mss;
	s.lost_since_send = (u64)(tp->lost - sent.lost) * c.mss;
	s.app_limited = rs->is_app_limited;
	s.ack_delayed = rs->is_ack_delayed;
	/* The kernel does not report the end of recovery. */
	if (f->bbr3.prior_recovery >= RECOVERY && c.recovery < RECOVERY)
		bbr3_on_recovery_end(&f->bbr3);
	bbr3_on_ack(&f->bbr3, &s, &c);
	note_moment(f, tp);
	apply(sk, f);
}

SEC("struct_ops")
void BPF_PROG(knee_event, struct sock *sk, int event)
{
	struct flow *f = flow_of(sk);
	struct connection c;

	if (!f || event != EVENT_TX_START)
		return;
	observe(sk, f, &c);
	bbr3_on_restart(&f->bbr3, &c);
	apply(sk, f);
}

/* The kernel asks for the threshold when recovery, a reduction or an episode of
 * timeouts begins: the time to save what may be undone. */
SEC("struct_ops")
u32 BPF_PROG(knee_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = flow_of(sk);

	if (f)
		bbr3_on_recovery_start(&f->bbr3);
	return tp->snd_ssthresh;
}

SEC("struct_ops")
void BPF_PROG(knee_set_state, struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = flow_of(sk);
	struct connection c;
	u64 window;

	if (!f || new_state != LOSS)
		return;
	/* The kernel has cut the window already; what was lost was sent within the
	 * one before. */
	window = f->bbr3.window;
	observe(sk, f, &c);
	f->bbr3.window = window;
	tell_losses(f, tp, moment(f, f->newest), c.app_limited, &c);
	bbr3_on_timeout(&f->bbr3, &c);
	apply(sk, f);
}

SEC("struct_ops")
u32 BPF_PROG(knee_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = flow_of(sk);
	struct connection c;

	if (f) {
		observe(sk, f, &c);
		bbr3_on_spurious(&f->bbr3, &c);
		apply(sk, f);
	}
	return tp->snd_cwnd;
}

/* At least two packets leave at once, as in the simulator. */
SEC("struct_ops")
u32 BPF_PROG(knee_min_tso_segs, struct sock *sk)
{
	return 2;
}

/* Bursts and lost packets need room: three windows, as in tcp_bbr.c. */
SEC("struct_ops")
u32 BPF_PROG(knee_sndbuf_expand, struct sock *sk)
{
	return 3;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops bbr3 = {
	.init = (void *)knee_init,
	.release = (void *)knee_release,
	.cong_control = (void *)knee_control,
	.cwnd_event = (void *)knee_event,
	.ssthresh = (void *)knee_ssthresh,
	.set_state = (void *)knee_set_state,
	.undo_cwnd = (void *)knee_undo_cwnd,
	.min_tso_segs = (void *)knee_min_tso_segs,
	.sndbuf_expand = (void *)knee_sndbuf_expand,
	.name = "knee_bbr3",
};
