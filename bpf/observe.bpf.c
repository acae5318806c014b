// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Reports each TCP connection of a network namespace when it ends (sockops): its
 * ends, when it was opened and established, its controller, and what TCP_INFO
 * says, computed as tcp_get_info() does (net/ipv4/tcp.c), since programs cannot
 * ask for it. Records wait in a ring buffer until the reader looks; those that
 * find no room are counted.
 *
 * A connection is reported if it was established after the program was attached.
 * For those that were open, an iterator asks for the report of their end, which
 * the kernel permits from Linux 6.13 on.
 *
 * Needs Linux 5.11 or later (bpf_get_socket_cookie, storage of sockets) with BTF.
 */
#include "types.h"
#include "sockops.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define TCP_BPF_SOCK_OPS_CB_FLAGS 1008
#define STATE_CB_FLAG 4			/* BPF_SOCK_OPS_STATE_CB_FLAG */
#define RING_BYTES (16 << 20)
#define KINDS_OF_TIME 3			/* TCP_CHRONO_BUSY, ..._RWND_LIMITED, ..._SNDBUF_LIMITED */

enum { CLOSE = 7, LISTEN = 10 };	/* TCP_... */
enum { RB_NO_WAKEUP = 1 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
	u16 skc_family;
	volatile u8 skc_state;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
};

struct minmax_sample {
	u32 t, v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	u32 mss_cache, srtt_us, mdev_us;
	u32 snd_ssthresh, snd_cwnd;
	u32 total_retrans, data_segs_out;
	u32 delivered, delivered_ce, dsack_dups, reord_seen;
	u32 rate_delivered, rate_interval_us;
	u64 bytes_acked, bytes_received, bytes_sent, bytes_retrans;
	u32 chrono_start, chrono_stat[KINDS_OF_TIME];
	u8 chrono_type : 2, rate_app_limited : 1;
	u16 total_rto;		/* since Linux 6.7 */
	struct minmax rtt_min;
};

#pragma clang attribute pop

/* As in linux/tcp.h: the fields that the reader uses. */
struct tcp_info {
	u8 states[7], app_limited;
	u32 options[2], snd_mss, unused[12];
	u32 rtt, rttvar, snd_ssthresh, snd_cwnd, unused2[4], total_retrans;
	u64 pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
	u32 unused3[3], min_rtt, data_segs_in, data_segs_out;
	u64 delivery_rate, time[KINDS_OF_TIME];
	u32 delivered, delivered_ce;
	u64 bytes_sent, bytes_retrans;
	u32 dsack_dups, reord_seen, unused4[4];
	u16 total_rto, unused5[3];
};
_Static_assert(__builtin_offsetof(struct tcp_info, snd_mss) == 16, "as in linux/tcp.h");
_Static_assert(__builtin_offsetof(struct tcp_info, rtt) == 68, "as in linux/tcp.h");
_Static_assert(__builtin_offsetof(struct tcp_info, total_retrans) == 100, "as in linux/tcp.h");
_Static_assert(__builtin_offsetof(struct tcp_info, min_rtt) == 148, "as in linux/tcp.h");
_Static_assert(__builtin_offsetof(struct tcp_info, delivered) == 192, "as in linux/tcp.h");
_Static_assert(__builtin_offsetof(struct tcp_info, total_rto) == 240, "as in linux/tcp.h");

struct times {
	u64 opened_ns, established_ns;	/* since boot; 0: not seen */
};

struct ended {
	u32 family;
	u16 local_port, remote_port;	/* in host byte order */
	u32 local[4], remote[4];	/* IPv4: the first word */
	u64 cookie;
	struct times times;
	u64 ended_ns;
	char controller[NAME];
	u32 info_bytes, unused;
	struct tcp_info info;
};
_Static_assert(sizeof(struct ended) == 344, "as in crates/knee-host/src/bpf/ended.rs");

struct counts {
	u64 lost;		/* found no room */
	u64 asked, not_asked;	/* open connections whose end will be reported, and not */
};

/* Set by the reader. */
const volatile u64 namespace_cookie = 0;
const volatile u32 tick_us = 0;		/* of jiffies */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} ended_connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counts);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct times);
} starts SEC(".maps");

/* tcp_get_info_chrono_stats() */
part void fill_times(struct tcp_info *info, struct tcp_sock *tcp)
{
	u32 now = (u32)bpf_jiffies64(), kind = BPF_CORE_READ_BITFIELD(tcp, chrono_type);
	u64 busy = 0;

	for (int index = 0; index < KINDS_OF_TIME; index++) {
		u64 ticks = tcp->chrono_stat[index];

		if (index + 1 == kind)
			ticks += now - tcp->chrono_start;
		info->time[index] = ticks * tick_us;
		busy += info->time[index];
	}
	info->time[0] = busy;
}

/* tcp_get_info() */
part void fill(struct ended *ended, struct tcp_sock *tcp)
{
	struct tcp_info *info = &ended->info;
	u64 pacing = ((struct sock *)tcp)->sk_pacing_rate;
	u64 rate = tcp->rate_delivered, interval = tcp->rate_interval_us;

	info->snd_mss = tcp->mss_cache;
	info->rtt = tcp->srtt_us >> 3;
	info->rttvar = tcp->mdev_us >> 2;
	info->snd_ssthresh = tcp->snd_ssthresh;
	info->snd_cwnd = tcp->snd_cwnd;
	info->total_retrans = tcp->total_retrans;
	info->pacing_rate = pacing;
	info->bytes_acked = tcp->bytes_acked;
	info->bytes_received = tcp->bytes_received;
	info->min_rtt = tcp->rtt_min.s[0].v;
	info->data_segs_out = tcp->data_segs_out;
	if (rate && interval) {
		info->delivery_rate = rate * tcp->mss_cache * 1000000 / interval;
		info->app_limited = BPF_CORE_READ_BITFIELD(tcp, rate_app_limited);
	}
	fill_times(info, tcp);
	info->delivered = tcp->delivered;
	info->delivered_ce = tcp->delivered_ce;
	info->bytes_sent = tcp->bytes_sent;
	info->bytes_retrans = tcp->bytes_retrans;
	info->dsack_dups = tcp->dsack_dups;
	info->reord_seen = tcp->reord_seen;
	ended->info_bytes = __builtin_offsetof(struct tcp_info, total_rto);
	if (bpf_core_field_exists(tcp->total_rto)) {
		info->total_rto = tcp->total_rto;
		ended->info_bytes = sizeof(*info);
	}
}

part void report(struct bpf_sock_ops *ops, struct bpf_sock *sk)
{
	/* Read all words before any branch: see steer.bpf.c. */
	u32 family = ops->family, four = ops->remote_ip4, own = ops->local_ip4;
	u32 remote[4] = {
		ops->remote_ip6[0], ops->remote_ip6[1], ops->remote_ip6[2], ops->remote_ip6[3],
	};
	u32 local[4] = {
		ops->local_ip6[0], ops->local_ip6[1], ops->local_ip6[2], ops->local_ip6[3],
	};
	u32 local_port = ops->local_port, remote_port = bpf_ntohl(ops->remote_port), zero = 0;
	struct counts *counts = bpf_map_lookup_elem(&counters, &zero);
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	struct times *times;
	struct ended *ended;
	char controller[NAME] = {};

	if (!tcp || !counts)
		return;
	bpf_getsockopt(ops, SOL_TCP, TCP_CONGESTION, controller, NAME);
	times = bpf_sk_storage_get(&starts, sk, 0, 0);
	ended = bpf_ringbuf_reserve(&ended_connections, sizeof(*ended), 0);
	if (!ended) {
		__sync_fetch_and_add(&counts->lost, 1);
		return;
	}
	__builtin_memset(ended, 0, sizeof(*ended));
	ended->family = family;
	ended->local_port = local_port;
	ended->remote_port = remote_port;
	if (family == AF_INET) {
		ended->local[0] = own;
		ended->remote[0] = four;
	} else {
		__builtin_memcpy(ended->local, local, sizeof(local));
		__builtin_memcpy(ended->remote, remote, sizeof(remote));
	}
	ended->cookie = bpf_get_socket_cookie(ops);
	if (times)
		ended->times = *times;
	ended->ended_ns = bpf_ktime_get_boot_ns();
	__builtin_memcpy(ended->controller, controller, NAME);
	fill(ended, tcp);
	bpf_ringbuf_submit(ended, RB_NO_WAKEUP);
}

SEC("sockops")
int knee_ended(struct bpf_sock_ops *ops)
{
	u32 op = ops->op, state = ops->args[1], former = ops->args[0];
	u32 flags = ops->bpf_sock_ops_cb_flags;
	struct bpf_sock *sk = ops->sk;
	struct times *times;

	if (op != CONNECT && op != ACTIVE_ESTABLISHED && op != PASSIVE_ESTABLISHED && op != STATE)
		return 1;
	if (!sk || bpf_get_netns_cookie(ops) != namespace_cookie)
		return 1;
	if (op == STATE) {
		if (state == CLOSE && former != LISTEN)
			report(ops, sk);
		return 1;
	}
	times = bpf_sk_storage_get(&starts, sk, 0, STORAGE_CREATE);
	if (times && op == CONNECT)
		times->opened_ns = bpf_ktime_get_boot_ns();
	if (op == CONNECT)
		return 1;
	if (times) {
		times->established_ns = bpf_ktime_get_boot_ns();
		if (!times->opened_ns)
			times->opened_ns = times->established_ns;
	}
	bpf_sock_ops_cb_flags_set(ops, flags | STATE_CB_FLAG);
	return 1;
}

/* Asks for the report of the end of an open connection. */
SEC("iter/tcp")
int knee_ask(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tcp;
	struct counts *counts;
	u32 zero = 0, state;
	int flags = 0;

	if (!common)
		return 0;
	tcp = bpf_skc_to_tcp_sock(common);
	counts = bpf_map_lookup_elem(&counters, &zero);
	if (!tcp || !counts)
		return 0;
	state = common->skc_state;
	if (state == CLOSE || state == LISTEN)
		return 0;
	if (bpf_getsockopt(tcp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags))) {
		counts->not_asked++;
		return 0;
	}
	if (flags & STATE_CB_FLAG)
		return 0;
	flags |= STATE_CB_FLAG;
	if (bpf_setsockopt(tcp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
		counts->not_asked++;
	else
		counts->asked++;
	return 0;
}
