/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Copa: the algorithm of crates/knee-cc/src/copa.rs, part by part; the reasons
 * are explained there. It knows neither sockets nor clocks: a sample and a
 * connection go in, and the state holds the decision.
 *
 * BPF has no floating point. Windows in segments, velocity and 1 / delta are
 * multiples of 2^-20, and a step of the window is rounded to one. The maximum
 * window is 2^18 segments instead of 10^9; an RTT counts as at most 33 s.
 * crates/knee-host/tests/replay measures the effect.
 */
#ifndef KNEE_COPA_H
#define KNEE_COPA_H

#include "../windowed_max.h"

#define SHIFT 20
#define ONE (1ULL << SHIFT)
#define SMALLEST (2 * ONE)
#define LARGEST (ONE << 18)
#define LONGEST_RTT_US ((1U << 25) - 1)
#define MIN_RTT_WINDOW_US 10000000U
#define MAX_RTT_ROUNDS 4
#define EMPTY_ROUNDS 5
#define NEARLY_EMPTY_PART 10
#define STEADY_WINDOWS 3
#define NO_RTT U64_MAX

/* The parameters delta and competitive, as resolved by knee-cc's registry. */
struct copa_config {
	u32 inverse;		/* 1 / delta, times 2^20 */
	u32 competitive;
};

const volatile struct copa_config config = { .inverse = 2 * ONE, .competitive = 1 };

/* Contents of an acknowledgement. */
struct sample {
	u64 rtt_us;		/* or NO_RTT */
	u64 newly_acked;	/* bytes */
};

/* Current state of the connection; bytes. */
struct connection {
	u64 now_ns;
	u64 sent;
	u64 acknowledged;
	u32 mss;
	u32 srtt_us;		/* zero: unknown */
	u32 app_limited;
	u32 window_limited;
};

struct copa {
	/* The decision: window in bytes, pacing rate in bytes per second; zero:
	 * not paced. */
	u64 decided_window;
	u64 rate;

	u64 window;
	u64 before;		/* the last loss */
	u64 inverse;		/* 1 / delta of competitive mode; zero: default mode */
	u64 round_end;		/* of competitive mode */
	u64 emptied_at_ns;
	u32 mss;
	bool slow_start;
	bool lost;

	/* Velocity. */
	bool up;
	u32 windows;
	u64 velocity;
	u64 start_window;
	u64 velocity_round_end;

	struct max_entry min_rtt[3];	/* U32_MAX less the RTT */
	struct max_entry standing[3];
	struct max_entry max_rtt[3];
};

/* ---- windowed extremes: extremes.rs */

/* The minimum RTT of a window, or zero without a sample. */
part u32 smallest(const struct max_entry *m)
{
	return m[0].value ? U32_MAX - m[0].value : 0;
}

part void take_rtt(struct copa *c, u64 rtt_us, const struct connection *k)
{
	u32 rtt = most(least(rtt_us, LONGEST_RTT_US), 1), now = k->now_ns / NS_PER_US;
	u32 srtt = most(least(k->srtt_us, LONGEST_RTT_US), 1);

	update_max(c->min_rtt, MIN_RTT_WINDOW_US, now, U32_MAX - rtt);
	update_max(c->standing, srtt / 2, now, U32_MAX - rtt);
	update_max(c->max_rtt, srtt * MAX_RTT_ROUNDS, now, rtt);
}

/* ---- modes */

part u64 inverse_of_default(void)
{
	return most(config.inverse, 1);
}

part u64 inverse_delta(const struct copa *c)
{
	return c->inverse ? c->inverse : inverse_of_default();
}

part void choose_mode(struct copa *c, u32 queueing, const struct connection *k)
{
	u64 range = above(c->max_rtt[0].value, smallest(c->min_rtt));
	bool full;

	if ((u64)queueing * NEARLY_EMPTY_PART <= range)
		c->emptied_at_ns = k->now_ns;
	full = above(k->now_ns, c->emptied_at_ns) > (u64)k->srtt_us * EMPTY_ROUNDS * NS_PER_US;
	if (!full || !config.competitive || c->slow_start) {
		c->inverse = 0;
	} else if (!c->inverse) {
		c->inverse = inverse_of_default();
		c->round_end = k->sent;
		c->lost = false;
	}
}

part void compete(struct copa *c, const struct connection *k)
{
	if (!c->inverse || k->acknowledged < c->round_end)
		return;
	c->round_end = k->sent;
	if (!c->lost)
		c->inverse = least(c->inverse + ONE, LARGEST);
	c->lost = false;
}

/* ---- the window */

part void update_velocity(struct copa *c, const struct connection *k)
{
	bool up = c->window > c->start_window;

	if (k->acknowledged < c->velocity_round_end)
		return;
	if (up == c->up) {
		if (++c->windows >= STEADY_WINDOWS)
			c->velocity *= 2;
	} else {
		c->velocity = ONE;
		c->up = up;
		c->windows = 1;
	}
	c->start_window = c->window;
	c->velocity_round_end = k->sent;
}

part void steer(struct copa *c, u64 acked, u32 standing, u32 queueing, const struct connection *k)
{
	u64 inverse = inverse_delta(c), part_of_acked, step;
	bool up = c->window * queueing <= standing * inverse;
	/* An unused window proves nothing (RFC 7661, section 4). */
	bool used = k->window_limited && !k->app_limited;

	if (c->slow_start) {
		if (up && used) {
			c->window += acked;
			return;
		}
		if (!up) {
			c->slow_start = false;
			c->start_window = c->window;
			c->velocity_round_end = k->sent;
		}
	}
	if (up != c->up && c->velocity > ONE) {
		c->velocity = ONE;
		c->up = up;
		c->windows = 0;
	}
	part_of_acked = (c->velocity * inverse + c->window / 2) / c->window;
	step = part_of_acked >= ONE ? acked : acked * part_of_acked >> SHIFT;
	if (!up)
		c->window = most(above(c->window, step), 1);
	else if (used)
		c->window += step;
	update_velocity(c, k);
	c->velocity = least(c->velocity, most((c->window << SHIFT) / inverse, ONE));
}

part void decide(struct copa *c, const struct connection *k)
{
	u32 rtt = smallest(c->standing);

	c->window = most(least(c->window, LARGEST), SMALLEST);
	c->decided_window = c->window * c->mss >> SHIFT;
	if (!rtt)
		rtt = k->srtt_us;
	c->rate = rtt ? most(2 * c->decided_window * 1000000 / rtt, 1) : 0;
}

/* ---- functions for a connection */

/* Begins a connection: `c` is all zero, `window` is in bytes. */
part void copa_begin(struct copa *c, const struct connection *k, u64 window)
{
	c->mss = most(k->mss, 1);
	c->window = most((window << SHIFT) / c->mss, ONE);
	c->before = c->window;
	c->slow_start = true;
	c->velocity = ONE;
	c->emptied_at_ns = k->now_ns;
	decide(c, k);
}

part void copa_on_ack(struct copa *c, const struct sample *s, const struct connection *k)
{
	u32 standing, least_rtt, queueing;
	u64 acked;

	if (k->mss != c->mss) {
		c->window = c->window * c->mss / most(k->mss, 1);
		c->before = c->before * c->mss / most(k->mss, 1);
		c->start_window = c->start_window * c->mss / most(k->mss, 1);
		c->mss = most(k->mss, 1);
	}
	if (s->rtt_us != NO_RTT)
		take_rtt(c, s->rtt_us, k);
	standing = smallest(c->standing);
	least_rtt = smallest(c->min_rtt);
	if (standing && least_rtt) {
		queueing = above(standing, least_rtt);
		acked = (least(s->newly_acked, 1 << 30) << SHIFT) / c->mss;
		choose_mode(c, queueing, k);
		compete(c, k);
		steer(c, least(acked, LARGEST), standing, queueing, k);
	}
	decide(c, k);
}

/* The queue was not observed while the application paused. */
part void copa_on_restart(struct copa *c, const struct connection *k)
{
	if (k->app_limited)
		c->emptied_at_ns = k->now_ns;
	decide(c, k);
}

part void copa_on_loss(struct copa *c)
{
	c->before = c->window;
	c->slow_start = false;
	if (c->inverse) {
		c->inverse = most(c->inverse / 2, inverse_of_default());
		c->lost = true;
	}
}

/* The first timeout of an episode follows copa_on_loss; further ones do not, and
 * leave the window to which an undo returns. */
part void copa_on_timeout(struct copa *c, const struct connection *k)
{
	c->window = SMALLEST;
	c->slow_start = true;
	c->inverse = 0;
	c->velocity = ONE;
	c->up = false;
	c->windows = 0;
	c->start_window = 0;
	c->velocity_round_end = 0;
	decide(c, k);
}

part void copa_on_spurious(struct copa *c, const struct connection *k)
{
	c->window = most(c->window, c->before);
	decide(c, k);
}

#endif
