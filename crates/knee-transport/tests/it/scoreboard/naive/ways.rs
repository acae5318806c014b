//! Where the RFCs and Linux differ: which of them the scoreboard follows.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Rfc,
    Linux,
    /// Neither's.
    Knee,
}

macro_rules! ways {
    ($($(#[$doc:meta])* $name:ident: $knee:ident,)*) => {
        /// How each rule is read.
        #[derive(Clone, Copy, Debug)]
        pub struct Ways { $($(#[$doc])* pub $name: Way,)* }

        impl Ways {
            /// As the sender does.
            pub const KNEE: Ways = Ways { $($name: Way::$knee,)* };

            pub const NAMES: &[&str] = &[$(stringify!($name),)*];

            /// The sender's ways but for one: the RFC's instead of another, else Linux's.
            pub fn but(name: &str) -> Ways {
                let mut ways = Ways::KNEE;
                $(if name == stringify!($name) {
                    ways.$name = if ways.$name == Way::Rfc { Way::Linux } else { Way::Rfc };
                    return ways;
                })*
                panic!("no way is called {name}");
            }
        }
    };
}

ways! {
    /// RFC 8985, section 6.3: lost after the RTT and the reordering window.
    /// `tcp_timeout_mark_lost`: without the window.
    lost_on_timeout: Linux,
    /// RFC 8985, section 6.2, step 2: an echo older than the retransmission tells nothing
    /// of it. `tcp_skb_spurious_retrans`: where it is acknowledged, not where it is
    /// selectively acknowledged.
    rack_echo: Linux,
    /// RFC 8985, `RACK_sent_after`, and Linux's `tcp_skb_sent_after` break ties by
    /// sequence. The sender knows the order of transmissions.
    same_instant: Knee,
    /// RFC 8985, section 6.2, step 5: losses are looked for at each ACK.
    /// `tcp_ack_is_dubious`: not at one in Open that only advances.
    plain_ack: Linux,
    /// RFC 5682, section 3.1, step 2a: an ACK that covers the recovery point decides nothing.
    /// `tcp_process_loss`: the timeout was spurious if it covers an original.
    frto_whole: Linux,
    /// RFC 8985 lets the reordering timer run beyond the retransmission timeout, Linux up
    /// to one timeout from now. The sender does not.
    reordering_bounded: Knee,
    /// RFC 8985, section 6.2, step 5: the reordering timer runs on for what is not lost yet.
    /// `tcp_rack_reo_timeout`: the next ACK or the timeout decides.
    reordering_rearmed: Rfc,
    /// RFC 6675, SetPipe: what is selectively acknowledged is not in flight.
    /// `tcp_sacktag_one`: a retransmission of what was not lost still is, and its D-SACK is
    /// expected.
    probe_sacked: Rfc,
    /// RFC 3522, section 3.2: `RetransmitTS` is that of the retransmission that begins
    /// recovery. `tcp_retrans_stamp_cleanup`: of the oldest one still out.
    stamp_in_recovery: Linux,
    /// The same at a timeout; `tcp_enter_loss` leaves `retrans_stamp`.
    stamp_in_timeout: Rfc,
    /// Whether undoing a timeout forgets `RetransmitTS`; `tcp_try_undo_loss` does not.
    stamp_in_loss_undo: Linux,
    /// RFC 8985, section 6.2: at each ACK. `tcp_ack` leaves the window and the RTT alone at
    /// an ACK below the first outstanding segment.
    old_ack: Rfc,
    /// RFC 8985, section 7: a probe is not a recovery. `tcp_init_undo`: its D-SACK is
    /// expected too.
    probe_undo: Linux,
    /// RFC 3522 asks for retransmissions that are out. `tcp_any_retrans_done` asks also
    /// whether the first segment ever was retransmitted.
    ever_resent: Rfc,
    /// RFC 8985, section 7.2: a probe is no later than the retransmission timer.
    /// `tcp_schedule_loss_probe`: after new data, than that would be if it counted from the
    /// first segment; once that time has passed, without a bound.
    probe_bounded: Knee,
    /// RFC 8985, section 6.2, step 4: any D-SACK widens the window. `tcp_dsack_seen`: after
    /// reordering was seen, and not a probe's.
    dsack_seen: Linux,
    /// The same, and `tcp_dsack_seen` ignores more D-SACKs than retransmissions.
    dsack_beyond: Linux,
    /// What is unmarked can be marked again, or (`tcp_rack_detect_loss` has taken it from
    /// the list) only when it is sent again.
    undone_timed: Linux,
    /// RFC 5682, section 3.1, step 1: not if a timeout's recovery goes on.
    /// `tcp_enter_loss`: also when the same segment times out again.
    frto_again: Linux,
    /// RFC 6675, section 5.1: recovery from a timeout goes on. `tcp_fastretrans_alert`,
    /// `FLAG_LOST_RETRANS`: fast recovery begins.
    lost_again_recovers: Rfc,
    /// RFC 8985, `Segment.lost`: all of its transmissions. `tcp_mark_skb_lost`: a probe's
    /// stays in flight.
    probe_lost: Rfc,
    /// RFC 6298, section 5.3: from the last ACK of new data. `tcp_rto_delta_us`: after
    /// another timer, from the last transmission of the first segment.
    rto_from: Linux,
    /// RFC 6298, section 5.3: at an ACK of new data. `tcp_rearm_rto`: as after another
    /// timer, if one runs.
    rto_restart: Rfc,
    /// RFC 8985, section 6.2, step 4: the round ends with SND.UNA after this ACK.
    /// `tcp_rack_update_reo_wnd`: with the delivery of what was sent after the window was
    /// widened; the window changes only when something is delivered.
    dsack_round: Linux,
    /// RFC 8985, section 6.2, step 4: each recovery that ends counts.
    /// `tcp_try_undo_recovery`: unless it is undone; `tcp_try_undo_dsack`: one more is granted.
    undone_persist: Linux,
    /// RFC 8985, section 6.2: losses are looked for at each ACK. `tcp_rack_mark_lost`: if
    /// something sent later arrived.
    every_ack: Rfc,
    /// RFC 6298, section 5.3: new data acknowledged. `tcp_clean_rtx_queue`: also
    /// selectively, if sent before the first segment was.
    sack_restarts: Linux,
    /// RFC 8985, section 6.2, step 3: only what was not retransmitted shows reordering.
    /// `tcp_try_undo_partial`: an old echo does too.
    undo_reordering: Linux,
    /// The same; `tcp_sacktag_one`: so does the D-SACK of a retransmitted segment that is
    /// selectively acknowledged.
    dsack_reordering: Linux,
    /// The same, in any state. `tcp_sacktag_write_queue`: what is selectively acknowledged
    /// shows none after a timeout that cannot be undone.
    loss_reordering: Linux,
    /// RFC 6298, section 5.1: a timer that runs goes on. `tcp_xmit_retransmit_queue`: the
    /// first segment's retransmission starts it again.
    head_restarts: Linux,
}
