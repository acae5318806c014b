// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The controller "fixed" of crates/knee-cc in the Linux kernel: a constant
 * window, whatever happens.
 *
 * Needs Linux 6.10 or later (the arguments of cong_control) with BTF. With
 * cong_control the kernel leaves the window to the controller in recovery too;
 * after a timeout the next acknowledgement restores it. Nothing is paced: the
 * rate only determines the burst size of segmentation offload, as
 * tcp_update_pacing_rate would.
 */
#include "types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define INFINITE_THRESHOLD 0x7fffffff
#define PACING_PERCENT 120	/* net.ipv4.tcp_pacing_ca_ratio */

/* The loader overwrites this. */
struct fixed_config {
	u32 window;		/* packets */
	u32 unused;
};

const volatile struct fixed_config config = { .window = 10 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
};

struct tcp_sock {
	u32 mss_cache;
	u32 srtt_us;		/* times 8 */
	u32 snd_cwnd, snd_cwnd_clamp, snd_ssthresh;
};

struct rate_sample {
	s32 delivered;
};

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	void (*init)(struct sock *sk);
};

#pragma clang attribute pop

part u32 hold(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 window = config.window;
	u64 rate;

	if (window > tp->snd_cwnd_clamp)
		window = tp->snd_cwnd_clamp;
	if (window < 1)
		window = 1;
	tp->snd_cwnd = window;
	if (tp->srtt_us) {
		rate = (u64)tp->mss_cache * window * PACING_PERCENT * 10000 * 8 / tp->srtt_us;
		sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
	}
	return window;
}

SEC("struct_ops")
void BPF_PROG(knee_init, struct sock *sk)
{
	((struct tcp_sock *)sk)->snd_ssthresh = INFINITE_THRESHOLD;
	hold(sk);
}

SEC("struct_ops")
void BPF_PROG(knee_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	hold(sk);
}

SEC("struct_ops")
u32 BPF_PROG(knee_ssthresh, struct sock *sk)
{
	return INFINITE_THRESHOLD;
}

SEC("struct_ops")
u32 BPF_PROG(knee_undo_cwnd, struct sock *sk)
{
	return hold(sk);
}

/* Room for lost and retransmitted data, as in tcp_bbr.c. */
SEC("struct_ops")
u32 BPF_PROG(knee_sndbuf_expand, struct sock *sk)
{
	return 3;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops fixed = {
	.init = (void *)knee_init,
	.cong_control = (void *)knee_control,
	.ssthresh = (void *)knee_ssthresh,
	.undo_cwnd = (void *)knee_undo_cwnd,
	.sndbuf_expand = (void *)knee_sndbuf_expand,
	.name = "knee_fixed",
};
