/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What programs for the events of connections (sockops) and iterators over TCP
 * sockets share: constants, and the contexts in which they are called.
 */
#ifndef KNEE_SOCKOPS_H
#define KNEE_SOCKOPS_H

#define AF_INET 2
#define AF_INET6 10
#define SOL_TCP 6
#define TCP_CONGESTION 13
#define NAME 16				/* TCP_CA_NAME_MAX */

enum {					/* BPF_SOCK_OPS_... */
	CONNECT = 3, ACTIVE_ESTABLISHED = 4, PASSIVE_ESTABLISHED = 5, NEEDS_ECN = 6, STATE = 10,
};
enum { F_NO_PREALLOC = 1, STORAGE_CREATE = 1, NOEXIST = 1 };
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};

/* As in linux/bpf.h; a context, so it is not relocated. */
struct bpf_sock;
struct bpf_sock_ops {
	u32 op;
	union {
		u32 args[4], reply;
	};
	u32 family;
	u32 remote_ip4, local_ip4;
	u32 remote_ip6[4], local_ip6[4];
	u32 remote_port;	/* in network byte order */
	u32 local_port;		/* in host byte order */
	u32 is_fullsock, snd_cwnd, srtt_us, bpf_sock_ops_cb_flags, state, rtt_min;
	u32 snd_ssthresh, rcv_nxt, snd_nxt, snd_una, mss_cache, ecn_flags;
	u32 rate_delivered, rate_interval_us, packets_out, retrans_out;
	u32 total_retrans, segs_in, data_segs_in, segs_out, data_segs_out;
	u32 lost_out, sacked_out, sk_txhash;
	u64 bytes_received, bytes_acked;
	struct bpf_sock *sk;
};
_Static_assert(__builtin_offsetof(struct bpf_sock_ops, sk) == 184, "as in linux/bpf.h");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common;
struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

#pragma clang attribute pop

#endif
