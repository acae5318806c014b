// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The controller "bbr_low_delay" of the Linux kernel: connects bbr/ to sockets.
 *
 * Needs Linux 6.10 or later (the arguments of cong_control) with BTF. Only the
 * used fields of the kernel's structures are declared; their offsets are
 * relocated on loading (CO-RE).
 *
 * The kernel counts packets, the algorithm bytes: a packet is mss_cache bytes.
 * The state is larger than the 104 bytes that a connection has for its
 * controller, so it is in the socket's own storage.
 *
 * Not written: tp->app_limited, with which tcp_bbr.c marks what it sends in
 * PROBE_RTT. The algorithm remembers that itself (`held_back`).
 */
#include "bbr/bbr.h"

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
	u64 tcp_wstamp_ns;
	u32 mss_cache;
	u32 srtt_us;
	struct minmax rtt_min;
	u32 packets_out, sacked_out, lost_out, retrans_out;
	u32 delivered, lost;
	u32 app_limited;
	u32 snd_cwnd, snd_cwnd_clamp, snd_ssthresh;
};

struct rate_sample {
	u32 prior_delivered;
	s32 delivered;
	long interval_us;
	long rtt_us;
	int losses;
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

/* A connection: the algorithm, and the kernel's counters extended beyond 32
 * bits. */
struct flow {
	struct bbr bbr;
	u64 delivered, lost;
	u32 delivered_packets, lost_packets;
	u32 shown_window;	/* in packets, as last written */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} flows SEC(".maps");

/* Fills `c`, and adopts changes by the kernel itself. */
part void observe(struct sock *sk, struct flow *f, struct connection *c)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	u32 mss = tp->mss_cache ? tp->mss_cache : 1, min_rtt_us = tp->rtt_min.s[0].v;

	if (f->bbr.mss && f->bbr.mss != mss)
		bbr_on_mss(&f->bbr, mss);
	f->delivered += (u64)(tp->delivered - f->delivered_packets) * mss;
	f->delivered_packets = tp->delivered;
	f->lost += (u64)(tp->lost - f->lost_packets) * mss;
	f->lost_packets = tp->lost;
	if (tp->snd_cwnd != f->shown_window) {
		f->shown_window = tp->snd_cwnd;
		f->bbr.window = (u64)tp->snd_cwnd * mss;
	}
	c->now_ns = tp->tcp_clock_cache;
	c->next_departure_ns = tp->tcp_wstamp_ns;
	c->in_flight = (u64)(tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out) *
		       mss;
	c->delivered = f->delivered;
	c->lost = f->lost;
	c->mss = mss;
	c->srtt_us = tp->srtt_us >> 3;
	c->min_rtt_us = min_rtt_us == U32_MAX ? 0 : min_rtt_us;
	c->recovery = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	c->app_limited = tp->app_limited != 0;
}

/* Writes the decision to the socket. */
part void apply(struct sock *sk, struct flow *f)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct bbr *b = &f->bbr;
	u32 window = most(least(b->window / b->mss, tp->snd_cwnd_clamp), 1);

	tp->snd_cwnd = window;
	f->shown_window = window;
	sk->sk_pacing_rate = least(b->rate, sk->sk_max_pacing_rate);
	if (b->threshold != U64_MAX)
		tp->snd_ssthresh = least(b->threshold / b->mss, INFINITE_THRESHOLD);
}

part struct flow *flow_of(struct sock *sk)
{
	return bpf_sk_storage_get(&flows, sk, 0, 0);
}

/* Only the random phase is not deterministic: 64 bits from the kernel. */
part u64 random_seed(void)
{
	u64 upper = bpf_get_prandom_u32();

	return upper << 32 | bpf_get_prandom_u32();
}

part void begin(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct connection c;

	if (!f)			/* out of memory: tried again by the next ACK */
		return;
	__builtin_memset(f, 0, sizeof(*f));
	f->delivered_packets = tp->delivered;
	f->lost_packets = tp->lost;
	observe(sk, f, &c);
	bbr_begin(&f->bbr, &c, f->bbr.window, random_seed());
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
	struct sample s;
	bool valid = rs->delivered >= 0 && rs->interval_us > 0;

	if (!f) {
		begin(sk);
		return;
	}
	observe(sk, f, &c);
	s.delivered = rs->delivered > 0 ? (u64)rs->delivered * c.mss : 0;
	s.prior_delivered =
		above(c.delivered, (u64)(tp->delivered - rs->prior_delivered) * c.mss);
	s.interval_us = valid ? rs->interval_us : 0;
	s.rtt_us = rs->rtt_us >= 0 ? rs->rtt_us : NO_RTT;
	s.newly_acked = (u64)rs->acked_sacked * c.mss;
	s.newly_lost = rs->losses > 0 ? (u64)rs->losses * c.mss : 0;
	s.prior_in_flight = (u64)rs->prior_in_flight * c.mss;
	s.app_limited = rs->is_app_limited;
	s.ack_delayed = rs->is_ack_delayed;
	bbr_on_ack(&f->bbr, &s, &c);
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
	bbr_on_restart(&f->bbr, &c);
	apply(sk, f);
}

/* The kernel asks for the threshold when recovery, a reduction or an episode of
 * timeouts begins: the time to save the window. */
SEC("struct_ops")
u32 BPF_PROG(knee_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = flow_of(sk);

	if (f)
		save_window(&f->bbr);
	return tp->snd_ssthresh;
}

SEC("struct_ops")
void BPF_PROG(knee_set_state, struct sock *sk, u8 new_state)
{
	struct flow *f = flow_of(sk);
	struct connection c;

	if (!f || new_state != LOSS)
		return;
	observe(sk, f, &c);
	bbr_on_timeout(&f->bbr, &c);
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
		bbr_on_spurious(&f->bbr, &c);
	}
	return tp->snd_cwnd;
}

SEC("struct_ops")
u32 BPF_PROG(knee_min_tso_segs, struct sock *sk)
{
	return sk->sk_pacing_rate < SINGLE_PACKET_RATE ? 1 : 2;
}

/* Bursts and lost packets need room: three windows, as in tcp_bbr.c. */
SEC("struct_ops")
u32 BPF_PROG(knee_sndbuf_expand, struct sock *sk)
{
	return 3;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops bbr_low_delay = {
	.init = (void *)knee_init,
	.release = (void *)knee_release,
	.cong_control = (void *)knee_control,
	.cwnd_event = (void *)knee_event,
	.ssthresh = (void *)knee_ssthresh,
	.set_state = (void *)knee_set_state,
	.undo_cwnd = (void *)knee_undo_cwnd,
	.min_tso_segs = (void *)knee_min_tso_segs,
	.sndbuf_expand = (void *)knee_sndbuf_expand,
	.name = "bbr_low_delay",
};
