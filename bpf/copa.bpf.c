// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The controller "copa" of crates/knee-cc in the Linux kernel: connects copa/
 * to sockets.
 *
 * Needs Linux 6.10 or later (the arguments of cong_control) with BTF. Only the
 * used fields of the kernel's structures are declared; their offsets are
 * relocated on loading (CO-RE). The state is in the socket's own storage.
 *
 * The kernel counts packets in its windows, the algorithm bytes: a packet is
 * mss_cache bytes. Sequence numbers are extended beyond 32 bits.
 */
#include "copa/copa.h"

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
enum { STATE_LOSS = 4 };	/* enum tcp_ca_state */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
};

struct tcp_sock {
	u64 tcp_clock_cache;
	u32 mss_cache;
	u32 srtt_us;		/* times 8 */
	u32 snd_nxt, snd_una;
	u32 app_limited;
	u32 snd_cwnd, snd_cwnd_clamp, snd_ssthresh;
	u8 is_cwnd_limited : 1;
};

struct rate_sample {
	long rtt_us;
	u32 acked_sacked;
};

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, int event);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

#pragma clang attribute pop

struct flow {
	struct copa copa;
	u64 acknowledged;	/* bytes */
	u32 una;		/* snd_una by then */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} flows SEC(".maps");

part void observe(struct sock *sk, struct flow *f, struct connection *k)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	f->acknowledged += tp->snd_una - f->una;
	f->una = tp->snd_una;
	k->now_ns = tp->tcp_clock_cache;
	k->acknowledged = f->acknowledged;
	k->sent = f->acknowledged + (tp->snd_nxt - tp->snd_una);
	k->mss = tp->mss_cache ? tp->mss_cache : 1;
	k->srtt_us = tp->srtt_us >> 3;
	k->app_limited = tp->app_limited != 0;
	k->window_limited = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
}

/* Writes the decision to the socket. */
part void apply(struct sock *sk, struct flow *f)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct copa *c = &f->copa;

	tp->snd_cwnd = most(least(c->decided_window / c->mss, tp->snd_cwnd_clamp), 1);
	if (c->rate)
		sk->sk_pacing_rate = least(c->rate, sk->sk_max_pacing_rate);
}

part struct flow *flow_of(struct sock *sk)
{
	return bpf_sk_storage_get(&flows, sk, 0, 0);
}

part void begin(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct connection k;

	if (!f)			/* out of memory: tried again by the next ACK */
		return;
	__builtin_memset(f, 0, sizeof(*f));
	f->una = tp->snd_una;
	observe(sk, f, &k);
	copa_begin(&f->copa, &k, (u64)tp->snd_cwnd * k.mss);
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
	struct flow *f = flow_of(sk);
	struct connection k;
	struct sample s;

	if (!f) {
		begin(sk);
		return;
	}
	observe(sk, f, &k);
	s.rtt_us = rs->rtt_us >= 0 ? rs->rtt_us : NO_RTT;
	s.newly_acked = (u64)rs->acked_sacked * k.mss;
	copa_on_ack(&f->copa, &s, &k);
	apply(sk, f);
}

SEC("struct_ops")
void BPF_PROG(knee_event, struct sock *sk, int event)
{
	struct flow *f = flow_of(sk);
	struct connection k;

	if (!f || event != EVENT_TX_START)
		return;
	observe(sk, f, &k);
	copa_on_restart(&f->copa, &k);
	apply(sk, f);
}

/* The kernel asks for the threshold when recovery, a reduction or an episode
 * of timeouts begins. */
SEC("struct_ops")
u32 BPF_PROG(knee_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = flow_of(sk);

	if (f)
		copa_on_loss(&f->copa);
	return tp->snd_ssthresh;
}

SEC("struct_ops")
void BPF_PROG(knee_set_state, struct sock *sk, u8 new_state)
{
	struct flow *f = flow_of(sk);
	struct connection k;

	if (!f || new_state != STATE_LOSS)
		return;
	observe(sk, f, &k);
	copa_on_timeout(&f->copa, &k);
	apply(sk, f);
}

SEC("struct_ops")
u32 BPF_PROG(knee_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = flow_of(sk);
	struct connection k;

	if (f) {
		observe(sk, f, &k);
		copa_on_spurious(&f->copa, &k);
		apply(sk, f);
	}
	return tp->snd_cwnd;
}

/* Room for lost and retransmitted data, as in tcp_bbr.c. */
SEC("struct_ops")
u32 BPF_PROG(knee_sndbuf_expand, struct sock *sk)
{
	return 3;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops copa = {
	.init = (void *)knee_init,
	.release = (void *)knee_release,
	.cong_control = (void *)knee_control,
	.cwnd_event = (void *)knee_event,
	.ssthresh = (void *)knee_ssthresh,
	.set_state = (void *)knee_set_state,
	.undo_cwnd = (void *)knee_undo_cwnd,
	.sndbuf_expand = (void *)knee_sndbuf_expand,
	.name = "knee_copa",
};
