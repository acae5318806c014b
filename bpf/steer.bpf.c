// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A policy in the kernel: connections of the policy's clients and ports get its
 * controller when they are established (sockops); open ones get it from an
 * iterator over TCP sockets. Each changed connection carries a mark with its
 * original controller, from which another iterator restores it.
 *
 * One longest-prefix table serves IPv6 and, as mapped addresses (RFC 4291,
 * section 2.5.5.2), IPv4. Other network namespaces are left alone, and nothing
 * is done after the lease has expired: the process that applies a policy renews
 * it.
 *
 * Needs Linux 5.16 or later (bpf_setsockopt in iterators) with BTF.
 */
#include "types.h"
#include "sockops.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define PREFIXES_MAX 100000
#define GROUPS_MAX 1024
#define HINTS_MAX 2048		/* twice the groups: a control group may be made anew */
#define LEVELS_MAX 32		/* of control groups, from a socket's own upwards */
#define MAPPED bpf_htonl(0xffff)	/* third word of ::ffff:0:0/96 */

enum {
	SOL_SOCKET = 1,
	SO_MAX_PACING_RATE = 47,
	TCP_BPF_IW = 1001,
	PACED = 0xfffffffe,	/* bytes/s: the highest rate that is still one */
};
enum { ESTABLISHED = 1, FIN_WAIT1 = 4, CLOSE_WAIT = 8 };	/* TCP_... */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
};

struct kernfs_node {
	u64 id;
};

struct cgroup;
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock {
	u32 sk_mark;
	struct sock_cgroup_data sk_cgrp_data;
};

struct sock_common {
	u32 skc_daddr;
	u16 skc_num;		/* local port, in host byte order */
	u16 skc_family;
	volatile u8 skc_state;
	struct in6_addr skc_v6_daddr;
};

struct tcp_congestion_ops {
	char name[NAME];
};

struct inet_connection_sock {
	const struct tcp_congestion_ops *icsk_ca_ops;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
};

#pragma clang attribute pop

/* Tables that user space writes. */
struct place {
	u32 bits;		/* of hint, port and address */
	u32 hint;		/* number of a hint; 0: connections without a hint that is named */
	u32 port;		/* local, in network byte order; 0: all */
	u32 address[4];
};

enum { MARK = 1, CGROUP = 2 };	/* kinds of hints, as bits */

struct hint {
	u64 kind;
	u64 value;		/* a mark, or the number of a control group */
};

struct rule {
	u32 group;
	u8 kept;		/* held out, or somebody else's */
	u8 part_bits;		/* of the prefix that a draw is for */
	u16 unused;
};

struct arm {
	char name[NAME];	/* empty: no change */
	u32 window;		/* initial, segments; 0: the kernel's */
	u32 paces;
	u32 ecn;
	u32 unused;
};

struct group {
	struct arm arms[2];
	u64 key[2];		/* of the draw between the two */
	u32 share;		/* that gets the second, in 2^-32 */
	u32 unused;
};

struct control {
	u64 lease_ns;		/* end, since boot */
	u64 namespace;		/* its cookie */
	u64 budget;		/* open connections that may be changed */
	u64 hints;		/* kinds of the hints that are named */
	u64 ecn;		/* whether an arm negotiates it */
};

struct counts {
	u64 given, had, kept, refused, given_open;
};

/* Mark of a connection, and the record that iterators write. */
struct mark {
	char former[NAME], given[NAME];
};

struct told {
	struct mark mark;
	char now[NAME];
};

/* Room for the mark of whichever socket is at an address. */
struct seat {
	u64 cookie;		/* of the socket that the mark belongs to; 0: none */
	struct mark mark;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, PREFIXES_MAX);
	__uint(map_flags, F_NO_PREALLOC);
	__type(key, struct place);
	__type(value, struct rule);
} rules SEC(".maps");

/* Numbers of the hints that are named. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HINTS_MAX);
	__type(key, struct hint);
	__type(value, u32);
} hints SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GROUPS_MAX);
	__type(key, u32);
	__type(value, struct group);
} groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct control);
} controls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GROUPS_MAX);
	__type(key, u32);
	__type(value, struct counts);
} counters SEC(".maps");

/* Memory allocated for the mark of each new connection would be half of what the
 * programs cost. So a seat stays when its socket ends, and the next socket at the
 * same address takes it. Addresses are used again, but where many connections end
 * at once the kernel gives their pages back, and there will be more seats than
 * sockets. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);	/* set when loaded */
	__uint(map_flags, F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct seat);
} seats SEC(".maps");

/* Marks of sockets for which there is no seat. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct mark);
} unseated SEC(".maps");

part bool same(const char *a, const char *b)
{
	const u64 *x = (const u64 *)a, *y = (const u64 *)b;

	return x[0] == y[0] && x[1] == y[1];
}

part u64 rotated(u64 x, int bits)
{
	return x << bits | x >> (64 - bits);
}

#define SIP_ROUND						\
	do {							\
		a += b; b = rotated(b, 13) ^ a; a = rotated(a, 32);	\
		c += d; d = rotated(d, 16) ^ c;			\
		a += d; d = rotated(d, 21) ^ a;			\
		c += b; b = rotated(b, 17) ^ c; c = rotated(c, 32);	\
	} while (0)

/* SipHash-2-4 (Aumasson and Bernstein, 2012) of 16 bytes. */
part u64 drawn(const u64 key[2], u64 first, u64 second)
{
	u64 a = key[0] ^ 0x736f6d6570736575ULL, b = key[1] ^ 0x646f72616e646f6dULL;
	u64 c = key[0] ^ 0x6c7967656e657261ULL, d = key[1] ^ 0x7465646279746573ULL;
	u64 last = 16ULL << 56;

	d ^= first; SIP_ROUND; SIP_ROUND; a ^= first;
	d ^= second; SIP_ROUND; SIP_ROUND; a ^= second;
	d ^= last; SIP_ROUND; SIP_ROUND; a ^= last;
	c ^= 0xff;
	SIP_ROUND; SIP_ROUND; SIP_ROUND; SIP_ROUND;
	return a ^ b ^ c ^ d;
}

/* The first bits of a 64-bit word in network byte order. */
part u64 first_bits(u64 word, u32 bits)
{
	if (bits == 0)
		return 0;
	return bits >= 64 ? word : word & bpf_cpu_to_be64(~0ULL << (64 - bits));
}

struct chosen {
	const struct arm *arm;
	const char *name;
	struct counts *counts;
};

/* Returns the rule for the clients of a hint, of the port or of all ports; NULL if
 * there is none. */
part struct rule *rule_of(struct place *place, u32 hint, u32 port)
{
	struct rule *rule;

	place->hint = hint;
	place->port = bpf_htonl(port);
	rule = bpf_map_lookup_elem(&rules, place);
	if (!rule) {
		place->port = 0;
		rule = bpf_map_lookup_elem(&rules, place);
	}
	return rule;
}

/* Returns the rule for the clients of a hint of this value, if it is named. */
part struct rule *hinted(struct place *place, u64 kind, u64 value, u32 port)
{
	struct hint hint = { kind, value };
	u32 *number = bpf_map_lookup_elem(&hints, &hint);

	return number ? rule_of(place, *number, port) : 0;
}

/* Returns the rule for a connection: of its mark; otherwise of its control group, the
 * innermost that is named; otherwise of those without hints. NULL if there is none. */
part struct rule *rule_for(struct place *place, u64 kinds, struct tcp_sock *tcp, u32 port)
{
	struct sock *sk = (struct sock *)tcp;
	struct cgroup_subsys_state *parent;
	struct cgroup *cgroup;
	struct rule *rule;

	if (kinds & MARK) {
		rule = hinted(place, MARK, sk->sk_mark, port);
		if (rule)
			return rule;
	}
	if (kinds & CGROUP) {
		cgroup = sk->sk_cgrp_data.cgroup;
		for (int level = 0; level < LEVELS_MAX && cgroup; level++) {
			rule = hinted(place, CGROUP, cgroup->kn->id, port);
			if (rule)
				return rule;
			parent = cgroup->self.parent;
			cgroup = parent ? parent->cgroup : 0;
		}
	}
	return rule_of(place, 0, port);
}

/* Returns the controller that a connection is to have; no name means no change. Without
 * a socket, for what has no hint, nothing is counted. */
part struct chosen choose(u64 kinds, struct tcp_sock *tcp, u32 port, const u32 address[4])
{
	struct place place = {
		.bits = 192,
		.address = { address[0], address[1], address[2], address[3] },
	};
	struct chosen chosen = {};
	struct rule *rule = rule_for(&place, kinds, tcp, port);
	struct group *group;
	u64 halves[2];
	u32 bits, second = 0;

	if (!rule)
		return chosen;
	chosen.counts = bpf_map_lookup_elem(&counters, &rule->group);
	group = bpf_map_lookup_elem(&groups, &rule->group);
	if (!chosen.counts || !group)
		return chosen;
	if (rule->kept) {
		if (tcp)
			chosen.counts->kept++;
		return chosen;
	}
	if (group->share) {
		bits = rule->part_bits;
		__builtin_memcpy(halves, place.address, 16);
		halves[0] = first_bits(halves[0], bits);
		halves[1] = first_bits(halves[1], bits > 64 ? bits - 64 : 0);
		second = drawn(group->key, halves[0], halves[1]) >> 32 < group->share;
	}
	chosen.arm = &group->arms[second & 1];
	chosen.name = chosen.arm->name;
	if (!chosen.name[0])
		chosen.name = 0;
	return chosen;
}

/* A socket, as the functions for marks need it. */
struct owner {
	struct tcp_sock *tcp;
	u64 address;		/* from that of the control, as a pointer cannot be a key */
	u64 cookie;
};

#define OWNER(socket, tcp, control)							\
	{ tcp, (u64)(tcp) - (u64)(control), bpf_get_socket_cookie(socket) }

/* Returns the mark of a socket, or NULL. A seat with the cookie of another socket
 * is left over from that one, which has ended. */
part struct mark *mark_of(const struct owner *owner)
{
	struct seat *seat = bpf_map_lookup_elem(&seats, &owner->address);

	if (!seat)
		return bpf_sk_storage_get(&unseated, owner->tcp, 0, 0);
	return seat->cookie == owner->cookie ? &seat->mark : 0;
}

/* Returns the mark of a socket, empty if it had none, or NULL without memory. A
 * socket has no storage if it has a seat. */
part struct mark *marked(const struct owner *owner)
{
	struct seat *seat = bpf_map_lookup_elem(&seats, &owner->address);
	const struct seat empty = {};
	struct mark *mark;

	if (!seat) {
		mark = bpf_sk_storage_get(&unseated, owner->tcp, 0, 0);
		if (mark)
			return mark;
		bpf_map_update_elem(&seats, &owner->address, &empty, NOEXIST);
		seat = bpf_map_lookup_elem(&seats, &owner->address);
	}
	if (!seat)
		return bpf_sk_storage_get(&unseated, owner->tcp, 0, STORAGE_CREATE);
	if (seat->cookie != owner->cookie) {
		__builtin_memset(&seat->mark, 0, sizeof(seat->mark));
		seat->cookie = owner->cookie;
	}
	return &seat->mark;
}

part void unmark(const struct owner *owner)
{
	struct seat *seat = bpf_map_lookup_elem(&seats, &owner->address);

	if (seat)
		seat->cookie = 0;
	else
		bpf_sk_storage_delete(&unseated, owner->tcp);
}

/* Reads the name of a connection's controller; bpf_getsockopt() takes longer. */
part void controller_of(struct tcp_sock *tcp, char *name)
{
	const u64 *words = (const u64 *)tcp->inet_conn.icsk_ca_ops->name;

	((u64 *)name)[0] = words[0];
	((u64 *)name)[1] = words[1];
}

/* Assigns a connection its controller; `socket` is what the helpers accept as one. */
#define GIVE(socket, tcp, control, chosen, count)					\
	do {										\
		char now[NAME] = {}, name[NAME];					\
		struct mark *mark;							\
											\
		__builtin_memcpy(name, (chosen).name, NAME);				\
		controller_of(tcp, now);						\
		if (same(now, name)) {							\
			(chosen).counts->had++;						\
			break;								\
		}									\
		const struct owner owner = OWNER(socket, tcp, control);			\
		mark = marked(&owner);							\
		if (!mark) {								\
			(chosen).counts->refused++;					\
			break;								\
		}									\
		if (bpf_setsockopt(socket, SOL_TCP, TCP_CONGESTION, name, NAME)) {	\
			(chosen).counts->refused++;					\
			/* If it was changed before, it can still be returned. */	\
			if (!mark->given[0])						\
				unmark(&owner);						\
			break;								\
		}									\
		/* If it was changed before, the mark keeps the first controller. */	\
		if (!same(now, mark->given))						\
			__builtin_memcpy(mark->former, now, NAME);			\
		__builtin_memcpy(mark->given, name, NAME);				\
		(chosen).counts->count++;						\
	} while (0)

/* Settings of a connection's start, which none that is open can get. */
part void start(struct bpf_sock_ops *ops, const struct chosen *chosen)
{
	u32 window = chosen->arm->window, most = PACED;

	if (window && bpf_setsockopt(ops, SOL_TCP, TCP_BPF_IW, &window, sizeof(window)))
		chosen->counts->refused++;
	if (chosen->arm->paces &&
	    bpf_setsockopt(ops, SOL_SOCKET, SO_MAX_PACING_RATE, &most, sizeof(most)))
		chosen->counts->refused++;
}

/* Reads the address of the peer, an IPv4 address as a mapped one. */
part void peer(struct bpf_sock_ops *ops, u32 address[4])
{
	u32 four = ops->remote_ip4, last = ops->remote_ip6[3];

	/* Otherwise the compiler would merge the two loads into one, from a context
	 * pointer that the verifier cannot follow. */
	barrier_var(four);
	barrier_var(last);
	address[0] = ops->remote_ip6[0];
	address[1] = ops->remote_ip6[1];
	address[2] = ops->remote_ip6[2];
	address[3] = last;
	if (ops->family == AF_INET) {
		address[0] = address[1] = 0;
		address[2] = MAPPED;
		address[3] = four;
	}
}

/* Whether the lease holds, and this is the network namespace of the policy. */
part bool applies(struct bpf_sock_ops *ops, const struct control *control)
{
	return bpf_ktime_get_boot_ns() <= control->lease_ns &&
	       bpf_get_netns_cookie(ops) == control->namespace;
}

/* Replies whether a connection is to negotiate ECN (RFC 3168), which the kernel asks
 * before its first segment; at the passive end there is no socket of its own yet. */
static __attribute__((noinline)) int needs_ecn(struct bpf_sock_ops *ops)
{
	u32 port = ops->local_port, zero = 0;
	u32 address[4];
	struct control *control;
	struct chosen chosen;

	peer(ops, address);
	control = bpf_map_lookup_elem(&controls, &zero);
	if (!control || !control->ecn || !applies(ops, control))
		return 1;
	chosen = choose(0, 0, port, address);
	if (chosen.name && chosen.arm->ecn)
		ops->reply = 1;
	return 1;
}

static __attribute__((noinline)) int established(struct bpf_sock_ops *ops)
{
	u32 port = ops->local_port, zero = 0;
	u32 address[4];
	struct bpf_sock *sk = ops->sk;
	struct control *control;
	struct tcp_sock *tcp;
	struct chosen chosen;

	peer(ops, address);
	control = bpf_map_lookup_elem(&controls, &zero);
	if (!sk || !control || !applies(ops, control))
		return 1;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return 1;
	chosen = choose(control->hints, tcp, port, address);
	if (!chosen.name || !chosen.counts)
		return 1;
	start(ops, &chosen);
	GIVE(ops, tcp, control, chosen, given);
	return 1;
}

/* Called several times for each connection. What most calls do not need is in
 * another function: inlined, all of it would be read first. */
SEC("sockops")
int knee_established(struct bpf_sock_ops *ops)
{
	u32 op = ops->op;

	if (op == NEEDS_ECN)
		return needs_ecn(ops);
	if (op != ACTIVE_ESTABLISHED && op != PASSIVE_ESTABLISHED)
		return 1;
	return established(ops);
}

/* Assigns open connections their controller, as many as the budget permits. */
SEC("iter/tcp")
int knee_open(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	u32 zero = 0, state, family, port;
	u32 address[4] = { 0, 0, MAPPED, 0 };
	struct control *control = bpf_map_lookup_elem(&controls, &zero);
	struct tcp_sock *tcp;
	struct chosen chosen;
	u64 given;

	if (!common || !control || !control->budget)
		return 0;
	tcp = bpf_skc_to_tcp_sock(common);
	if (!tcp)
		return 0;
	state = common->skc_state;
	if (state != ESTABLISHED && state != FIN_WAIT1 && state != CLOSE_WAIT)
		return 0;
	family = common->skc_family;
	port = common->skc_num;
	if (family == AF_INET) {
		address[3] = common->skc_daddr;
	} else if (family == AF_INET6) {
		/* An IPv4 peer's address is mapped. */
		address[0] = common->skc_v6_daddr.in6_u.u6_addr32[0];
		address[1] = common->skc_v6_daddr.in6_u.u6_addr32[1];
		address[2] = common->skc_v6_daddr.in6_u.u6_addr32[2];
		address[3] = common->skc_v6_daddr.in6_u.u6_addr32[3];
	} else {
		return 0;
	}
	chosen = choose(control->hints, tcp, port, address);
	if (!chosen.name || !chosen.counts)
		return 0;
	given = chosen.counts->given_open;
	GIVE(tcp, tcp, control, chosen, given_open);
	control->budget -= chosen.counts->given_open - given;
	return 0;
}

/* Writes the record of a marked socket for the reader. Returns whether the socket is
 * marked and this was done; without room the kernel calls again. */
part bool tell(struct bpf_iter__tcp *ctx, struct owner *owner, struct told *told)
{
	struct sock_common *common = ctx->sk_common;
	u32 zero = 0;
	struct control *control = bpf_map_lookup_elem(&controls, &zero);
	struct tcp_sock *tcp;
	struct mark *mark;

	if (!common || !control)
		return false;
	tcp = bpf_skc_to_tcp_sock(common);
	if (!tcp)
		return false;
	*owner = (struct owner)OWNER(tcp, tcp, control);
	mark = mark_of(owner);
	if (!mark)
		return false;
	controller_of(tcp, told->now);
	__builtin_memcpy(&told->mark, mark, sizeof(told->mark));
	return !bpf_seq_write(ctx->meta->seq, told, sizeof(*told));
}

/* Restores marked connections to their original controller, and writes a record
 * of each. A connection that its program has changed since is left alone. */
SEC("iter/tcp")
int knee_back(struct bpf_iter__tcp *ctx)
{
	struct told told = {};
	struct owner owner;

	if (!tell(ctx, &owner, &told))
		return 0;
	/* If the kernel refuses, the mark remains for readers to see. */
	if (same(told.now, told.mark.given) &&
	    bpf_setsockopt(owner.tcp, SOL_TCP, TCP_CONGESTION, told.mark.former, NAME))
		return 0;
	unmark(&owner);
	return 0;
}

/* Writes a record of each marked connection. */
SEC("iter/tcp")
int knee_marked(struct bpf_iter__tcp *ctx)
{
	struct told told = {};
	struct owner owner;

	tell(ctx, &owner, &told);
	return 0;
}
