//! The table of all measures: each is declared here, and nowhere else.
//!
//! A declaration reads
//!
//! ```text
//! /// Its formula, for docs/measures.md.
//! Variant(parameters) = "name", Unit, Better, Class, "its meaning in a line" => {
//!     of Flows |flows| flows.value();             how it is computed of these …
//!     of Link |link| link.value();                … or of a link
//!     column [(arguments)] "name_s", "title";     a column of sweeps
//!     within [(arguments)] Tolerance::Part(0.1);  fidelity: how far it may be off
//! }
//! ```
//!
//! The expressions after `=>` belong to `knee-record`, which has the records: a formula is written
//! here, or in a function there. Parameters have the names of [`Parameters`](super::Parameters); a
//! new parameter also needs a key in `file/claim.rs`. All users of measures read this table: claims
//! and their schema, summaries, sweeps, fidelity, `knee list` and docs/measures.md.

/// Passes the table of all measures to the macro `$with`.
#[doc(hidden)]
#[macro_export]
macro_rules! measures {
    ($with:ident) => {
        $with! {
            chapter "How much" {
                /// `8 Σ (D(e) - D(b)) / (max e - min b)`: payload that was delivered
                /// in order to the receiver's application
                Goodput = "goodput", BitsPerSecond, More, Rate,
                    "payload delivered in order over time" => {
                    of Flows |flows| flows.goodput();
                    column [] "goodput_bps", "goodput";
                    within [] Tolerance::Part(0.02);
                }
                /// `8 Σ h (S(e) - S(b)) / (max e - min b)`: IP bytes sent, retransmissions and
                /// headers included; h is IP bytes over payload bytes of a full segment
                Throughput = "throughput", BitsPerSecond, Neither, Rate,
                    "IP bytes sent over time, retransmissions included" => {
                    of Flows |flows| flows.throughput();
                }
                /// `Σ (D(e) - D(b))` of the target over the same sum of all flows, each flow
                /// over its own span
                Share = "share", Fraction, Neither, Fairness,
                    "goodput over that of all flows" => {
                    of Flows |flows| flows.share();
                }
                /// of a link: IP bytes that it sent between b and e, the parts of packets then
                /// in transmission included, over those that its rate would have allowed; not
                /// measurable without a rate
                Utilisation = "utilisation", Fraction, More, Rate,
                    "IP bytes that left over what the rate allows" => {
                    of Link |(link, run, window)| link.utilisation(run, window);
                }
                /// of a link: packets dropped by queue, AQM, policer or circuit breaker between
                /// b and e
                Drops = "drops", Number, Less, Cost,
                    "packets dropped by queue, AQM or policer" => {
                    of Link |(link, run, window)| link.drops(run, window);
                }
                /// of a link with a circuit breaker: largest `min L(i)` over as many intervals i
                /// in a row as trip it, `L(i)` being the packets dropped or lost in interval i
                /// over those that entered; of the intervals within the claim's window, up to
                /// its first trip; the warm-up does not matter. It trips where this is above its
                /// `loss`
                BreakerLoss = "breaker_loss", Fraction, Less, Cost,
                    "how close a circuit breaker came to tripping" => {
                    of Link |(link, run, window)| link.breaker_loss(run, window);
                }
                /// of a link with a circuit breaker: from the claim's `from` (or the start of the
                /// run) to the end of the interval that trips it for the first time; the warm-up
                /// does not matter. Never is the best that there is
                BreakerTrip = "breaker_trip", Seconds, More, Cost,
                    "until a circuit breaker trips" => {
                    of Link |(link, run, window)| link.breaker_trip(run, window);
                }
                /// `Σ (R(e) - R(b)) / Σ (S(e) - S(b))`: after the warm-up
                RetransmitRatio = "retransmit_ratio", Fraction, Less, Cost,
                    "retransmitted over sent bytes after the warm-up" => {
                    of Flows |flows| flows.retransmit_ratio();
                }
                /// the same from each flow's start to the end of its warm-up; no window applies
                RetransmitRatioStartup = "retransmit_ratio_startup", Fraction, Less, Cost,
                    "retransmitted over sent bytes before the end of the warm-up" => {
                    of Flows |flows| flows.retransmit_ratio_startup();
                }
                /// the same from start to end; no window applies
                RetransmitRatioTotal = "retransmit_ratio_total", Fraction, Less, Cost,
                    "retransmitted over sent bytes from start to end" => {
                    of Flows |flows| flows.retransmit_ratio_total();
                    column [] "retransmit_ratio", "bytes retransmitted";
                    within [] Tolerance::PartOrPoints(0.2, 0.2);
                }
                /// `Σ (D(e) - D(b)) / Σ (S(e) - S(b))`: payload delivered over payload sent, at
                /// most 1
                UsefulRatio = "useful_ratio", Fraction, More, Cost,
                    "bytes delivered over bytes sent" => {
                    of Flows |flows| flows.useful_ratio();
                }
                /// goodput times the useful ratio, or goodput over the bytes sent for each byte
                /// delivered: as power weighs throughput against delay, it weighs goodput
                /// against its cost, where each byte sent has a price
                EffectiveGoodput = "effective_goodput", BitsPerSecond, More, Cost,
                    "goodput times the useful ratio" => {
                    of Flows |flows| flows.effective_goodput();
                }
                /// of the means of the IP bytes sent in whole intervals of five minutes, the
                /// smallest that at least 95 % of them do not exceed: what a user is billed for
                /// who pays by bandwidth. Needs at least five minutes
                BilledRate = "billed_rate", BitsPerSecond, Less, Cost,
                    "95th percentile of the rate sent, over five minutes each" => {
                    of Flows |flows| flows.billed_rate();
                }
                /// `max(0, P - L) / P`, from start to end and of all flows (`*`): P is the
                /// number of packets retransmitted, in packets of their mean size, L the number
                /// that all links dropped or lost, ACKs included. The rest was lost in a stack
                /// or a network card, or was retransmitted although it had arrived; no window
                /// applies
                LostElsewhere = "lost_elsewhere", Fraction, Neither, Cost,
                    "part of the retransmissions that no link lost" => {
                    of Flows |flows| flows.lost_elsewhere();
                }
                /// mean over the flows of the time from start to the acknowledgement of the
                /// last byte; never, if one was cut off
                CompletionTime = "completion_time", Seconds, Less, Waiting,
                    "time from start until all is acknowledged" => {
                    of Flows |flows| flows.completion_time();
                    column [] "completion_s", "completion time";
                    within [] Tolerance::Part(0.05);
                }
                /// `u / d`: u is `Σ h (D(e) - D(b))` over the capacity `C + Σ h N(b)` of the
                /// flows' paths, d the time-weighted mean of RTT over base RTT, each at least 1:
                /// packets smaller than a full segment can return sooner. 1 at the knee;
                /// half a link, or twice the delay, gives 0.5. Only of flows over one path
                /// each. (Kleinrock 1979)
                Power = "power", Number, More, Balance,
                    "Kleinrock's power; 1 at the knee" => {
                    of Flows |flows| flows.power();
                    column [] "power", "power (1 at the knee)";
                }
            }
            chapter "How late" {
                /// the last RTT measured, distribution over time. Its smallest and largest value
                /// are those of every RTT measured when the span is the flow's whole life, else
                /// those of the samples. Of a flow over several paths: that of the last of its
                /// paths that is up
                Rtt(statistic: Statistic) = "rtt", Seconds, Less, Delay,
                    "RTT as the sender measured it" => {
                    of Flows |flows| flows.rtt(*statistic);
                    column [(Statistic::P50)] "rtt_p50_s", "RTT, median";
                    column [(Statistic::P95)] "rtt_p95_s", "RTT, 95th percentile";
                }
                /// of a program: base RTT, and what the last of its packets in both directions
                /// waited in queues; the links' part of the RTT, which the observer knows of every
                /// transport. Distribution over time
                PathRtt(statistic: Statistic) = "path_rtt", Seconds, Less, Delay,
                    "RTT of the path as a program's packets met it" => {
                    of Flows |flows| flows.path_rtt(*statistic);
                }
                /// smoothed RTT (RFC 6298), distribution over time
                SmoothedRtt(statistic: Statistic) = "smoothed_rtt", Seconds, Less, Delay,
                    "smoothed RTT" => {
                    of Flows |flows| flows.smoothed_rtt(*statistic);
                    within [(Statistic::P50)] Tolerance::Part(0.1);
                }
                /// the controller's estimate of the minimum RTT, distribution over time
                MinRttEstimate(statistic: Statistic) = "min_rtt_estimate", Seconds, Neither, Delay,
                    "minimum RTT, as estimated by the controller" => {
                    of Flows |flows| flows.min_rtt_estimate(*statistic);
                }
                /// the controller's estimate of the bottleneck's bandwidth, payload,
                /// distribution over time
                BandwidthEstimate(statistic: Statistic) = "bandwidth_estimate", BitsPerSecond,
                    Neither, Rate, "bandwidth, as estimated by the controller" => {
                    of Flows |flows| flows.bandwidth_estimate(*statistic);
                }
                /// of flows over one path each: `max(0, RTT - base RTT)`, where the base RTT is
                /// that of a full segment and its ACK over empty queues, with rates and delays
                /// that change each at their best while the flow may last; of a link: the time
                /// that a packet entering the queue would wait. Distribution over time
                QueueingDelay(statistic: Statistic) = "queueing_delay", Seconds, Less, Delay,
                    "RTT minus that of empty queues; delay of a queue" => {
                    of Flows |flows| flows.queueing_delay(*statistic);
                    of Link |(link, run, window)| link.queueing_delay(run, window, *statistic);
                    column [(Statistic::P95)] "queueing_delay_p95_s",
                        "queueing delay, 95th percentile";
                }
                /// standing queue: mean, over windows of one second from b on, of the smallest
                /// queueing delay in each. A last window cut short by e counts only if it is
                /// the only one. Of a group, mean over the flows
                StandingQueue = "standing_queue", Seconds, Less, Delay,
                    "standing queue: smallest delay in each second, mean" => {
                    of Flows |flows| flows.standing_queue();
                    of Link |(link, run, window)| link.standing_queue(run, window);
                    column [] "standing_queue_s", "standing queue";
                }
            }
            chapter "How fair" {
                /// `(Σ x)² / (n Σ x²)` over the n flows' goodputs, each over its own span;
                /// between `1/n` and 1. (Jain, Chiu, Hawe 1984)
                Jain = "jain", Number, More, Fairness,
                    "Jain's fairness index of the goodputs" => {
                    of Flows |flows| flows.jain();
                    column [] "jain", "fairness within the group (Jain's index)";
                }
                /// from the last start of the flows (or `from`, if later) to the first moment t
                /// such that in every stretch of one second within `[t, t + hold]` each flow's
                /// goodput x satisfies `|x - m| <= band m`, m being the mean over the flows. A
                /// `hold` below one second shortens the stretch. The warm-up does not matter.
                /// Resolution: the sampling interval
                ConvergenceTime {
                    /// Allowed deviation from the fair share, as a fraction of it.
                    band: f64,
                    /// How long the shares must stay within the band.
                    hold: Time,
                } = "convergence_time", Seconds, Less, Fairness,
                    "time until all stay near their fair share" => {
                    of Flows |flows| flows.convergence_time(*band, *hold);
                    within [{ band: 0.25, hold: Time::from_millis(2000) }] Tolerance::Factor(2.0);
                }
                /// from the claim's `from` to the end of the first stretch of `hold` in which
                /// the flows' total goodput, with headers, reaches `fraction` of what their
                /// paths allow in it. It is at least `hold`
                TakeoverTime {
                    /// Fraction of the path's rate that must be reached.
                    fraction: f64,
                    /// Time over which goodput is averaged.
                    hold: Time,
                } = "takeover_time", Seconds, Less, Fairness,
                    "time until the flows have the path's rate" => {
                    of Flows |flows| flows.takeover_time(*fraction, *hold);
                }
            }
            chapter "What the controller does" {
                /// samples in `phase` whose predecessor is not; mean over the flows. Phases
                /// shorter than the sampling interval can be missed
                PhaseEntries(phase: String) = "phase_entries", Number, Neither, Balance,
                    "number of times that a phase of the controller began" => {
                    of Flows |flows| flows.phase_entries(phase);
                }
                /// part of the time in phases whose name begins with `phase`
                PhaseShare(phase: String) = "phase_share", Fraction, Neither, Balance,
                    "part of the time in phases" => {
                    of Flows |flows| flows.phase_share(phase);
                }
                /// mean time from the first sample in phases whose name begins with `phase` to
                /// the first after them, over the stays that begin and end between b and e
                PhaseDuration(phase: String) = "phase_duration", Seconds, Neither, Balance,
                    "how long the controller stays in phases" => {
                    of Flows |flows| flows.phase_duration(phase);
                }
                /// share of the ends of phases whose name begins with `phase` after which one
                /// follows whose name begins with `next`; the ends between b and e
                PhaseFollowedBy {
                    /// Name of the phase that ends, or its beginning.
                    phase: String,
                    /// Name of the phase that follows, or its beginning.
                    next: String,
                } = "phase_followed_by", Fraction, Neither, Balance,
                    "how often a phase leads to another" => {
                    of Flows |flows| flows.phase_followed_by(phase, next);
                }
                /// pacing rate over the estimate of the bandwidth, mean over the time in phases
                /// whose name begins with `phase`; samples without either do not count
                PacingGain(phase: String) = "pacing_gain", Number, Neither, Balance,
                    "pacing rate in phases, over the estimated bandwidth" => {
                    of Flows |flows| flows.pacing_gain(phase);
                }
                /// congestion window over the BDP of the controller's own estimates, mean over
                /// the time in phases whose name begins with `phase`; samples without estimates
                /// do not count
                WindowGain(phase: String) = "window_gain", Number, Neither, Balance,
                    "congestion window in phases, over the estimated BDP" => {
                    of Flows |flows| flows.window_gain(phase);
                }
                /// bytes in flight in the last sample of phases whose name begins with `phase`,
                /// over the BDP of the controller's own estimates; mean over the ends between b
                /// and e
                PhaseEndInFlight(phase: String) = "phase_end_in_flight", Number, Neither, Balance,
                    "bytes in flight at the end of phases, over the estimated BDP" => {
                    of Flows |flows| flows.phase_end_in_flight(phase);
                }
                /// the congestion window, payload, distribution over time; of flows whose
                /// controllers have one
                CongestionWindow(statistic: Statistic) = "congestion_window", Bytes, Neither,
                    Balance, "congestion window" => {
                    of Flows |flows| flows.congestion_window(*statistic);
                }
                /// the slow-start threshold, payload, distribution over time; not measurable
                /// before there is one
                SlowStartThreshold(statistic: Statistic) = "slow_start_threshold", Bytes, Neither,
                    Balance, "slow-start threshold" => {
                    of Flows |flows| flows.slow_start_threshold(*statistic);
                }
                /// bytes that `shrink_window` of BBR has removed from the window, payload,
                /// distribution over time; not measurable with other controllers
                Shrink(statistic: Statistic) = "shrink", Bytes, Neither, Balance,
                    "bytes that BBR has removed from the window" => {
                    of Flows |flows| flows.shrink(*statistic);
                }
                /// payload sent and neither acknowledged nor found lost, distribution over time
                InFlight(statistic: Statistic) = "in_flight", Bytes, Neither, Balance,
                    "bytes in flight" => {
                    of Flows |flows| flows.in_flight(*statistic);
                }
                /// growth of the bandwidth estimate in a round of STARTUP: geometric mean over
                /// the rounds from the first on that grew by 25 % or more, but for the last of
                /// them, in which the path fills; mean over the flows
                StartupGrowth = "startup_growth", Number, Neither, Balance,
                    "growth of BBR's estimate in a round of STARTUP" => {
                    of Flows |flows| flows.startup_growth();
                }
                /// rounds at the end of STARTUP since the last that brought 25 % over the
                /// estimate which counts so far; mean over the flows
                StartupFlatRounds = "startup_flat_rounds", Number, Neither, Balance,
                    "rounds without growth at the end of STARTUP" => {
                    of Flows |flows| flows.startup_flat_rounds();
                }
            }
            chapter "Over several paths" {
                /// completion time of a file over T*: no scheduler can be earlier. Mean over the
                /// flows. The completion time runs to the acknowledgement of the last byte, so
                /// even a perfect scheduler stays above 1 by one reverse delay
                CompletionOverBound = "completion_over_bound", Number, Less, Waiting,
                    "completion time over the earliest possible" => {
                    of Flows |flows| flows.completion_over_bound();
                    column [] "completion_over_bound" as Ratio,
                        "completion over the earliest possible";
                }
                /// the same over the smallest T* of one path alone; below 1, several paths were
                /// certainly useful
                CompletionOverBestPath = "completion_over_best_path", Number, Less, Waiting,
                    "completion time over the earliest possible on the best path alone" => {
                    of Flows |flows| flows.completion_over_best_path();
                    column [] "completion_over_best_path" as Ratio,
                        "completion over the best path alone";
                }
                /// completion time of a file over that of a perfect scheduler with the same
                /// controllers: the least t by which the paths, each alone and always fed, have
                /// delivered the file. The excess above 1 is due to scheduling; the difference
                /// between the bound T* and this is due to congestion control. From further runs
                /// of the simulator; not strict, as a path with less traffic may lose less. Mean
                /// over the flows
                CompletionOverPerfect = "completion_over_perfect", Number, Less, Waiting,
                    "completion time over that of a perfect scheduler" => {
                    of Flows |flows| flows.completion_over_perfect();
                }
                /// `Σ h (D(e) - D(b))` over the capacity `C + Σ h N(b)` of the flows' paths; not
                /// measurable on an unlimited path
                AggregationRatio = "aggregation_ratio", Fraction, More, Rate,
                    "bytes delivered over what all paths allowed" => {
                    of Flows |flows| flows.aggregation_ratio();
                    column [] "aggregation_ratio", "delivered, share of what all paths allowed";
                }
                /// time that a byte waited at the receiver for preceding bytes of another
                /// path, mean over all bytes from start to end
                HeadOfLineBlocking = "head_of_line_blocking", Seconds, Less, Delay,
                    "mean time that a byte waits for bytes of another path" => {
                    of Flows |flows| flows.head_of_line_blocking();
                    column [] "head_of_line_blocking_s", "waiting for another path, mean";
                }
                /// largest number of bytes waiting in this way; the maximum
                /// over the flows
                ReceiveBufferPeak = "receive_buffer_peak", Bytes, Less, Cost,
                    "largest number of bytes waiting for another path" => {
                    of Flows |flows| flows.receive_buffer_peak();
                }
                /// payload bytes that the receiver got more than once over several paths,
                /// over those delivered, from start to end
                DuplicateRatio = "duplicate_ratio", Fraction, Less, Cost,
                    "bytes received more than once, over all" => {
                    of Flows |flows| flows.duplicate_ratio();
                    column [] "duplicate_ratio", "bytes received more than once";
                }
                /// payload that the path named `path` delivered over that of all paths of the
                /// flows, within the span
                PathShare(path: String) = "path_share", Fraction, Neither, Balance,
                    "bytes of a path over those of all" => {
                    of Flows |flows| flows.path_share(path);
                }
                /// t_i: from the flow's start to the acknowledgement of the last payload that the
                /// path named `path` delivered, at most to the flow's end; mean over the flows.
                /// Whole flows; no window applies
                PathFinishTime(path: String) = "path_finish_time", Seconds, Less, Waiting,
                    "time until a path has delivered its part" => {
                    of Flows |flows| flows.path_finish_time(path);
                }
                /// `max t_i - min t_i` over the paths that delivered something, mean over the
                /// flows: zero if the paths finish together, or if one path carries everything
                FinishSpread = "finish_spread", Seconds, Less, Waiting,
                    "time between the first path that finishes and the last" => {
                    of Flows |flows| flows.finish_spread();
                    column [] "finish_spread_s", "from the first path's finish to the last";
                }
                /// `T - T'` of a file: T is its completion time, T' what it would take at the
                /// rates of all its paths together; mean over the flows. (The synchronous-completion
                /// study, figure 2.) T' has no delays and no slow start, so it is never zero
                TailDelay = "tail_delay", Seconds, Less, Waiting,
                    "completion time beyond that at the rates of all paths together" => {
                    of Flows |flows| flows.tail_delay();
                    column [] "tail_delay_s", "tail delay";
                }
            }
            chapter "Pages and videos" {
                /// from the flow's start to the arrival of its last object, mean over the flows;
                /// never, if one did not arrive
                PageLoadTime = "page_load_time", Seconds, Less, Waiting,
                    "time until the last object of a page is complete" => {
                    of Flows |flows| flows.page_load_time();
                    column [] "page_load_s", "page load time";
                    within [] Tolerance::Part(0.05);
                }
                /// from the flow's start to the arrival of an object: distribution over the
                /// objects, all of the same weight
                ObjectTime(statistic: Statistic) = "object_time", Seconds, Less, Waiting,
                    "time until an object of a page is complete" => {
                    of Flows |flows| flows.object_time(*statistic);
                }
                /// of bursts: from a request to the arrival of its answer's last byte,
                /// distribution over the requests, all of the same weight. A request still in
                /// progress at the end does not count
                BurstTime(statistic: Statistic) = "burst_time", Seconds, Less, Waiting,
                    "time until the answer to a request is complete" => {
                    of Flows |flows| flows.burst_time(*statistic);
                    column [(Statistic::Mean)] "burst_time_s", "time to answer a request, mean";
                }
                /// of a page, against that of `relative_to`: share of objects that arrived
                /// sooner after their flow's start than the one of the same number there; a tie
                /// counts half. Two equal runs give a half on average, but a single pair of them
                /// can give much more or less: compare a result with that of such a pair
                ObjectsEarlier = "objects_earlier", Fraction, More, Waiting,
                    "share of objects earlier than those of relative_to" => {
                    of Flows |_| because("it needs another page to compare with");
                    against |pair, window| objects_earlier(pair, window);
                }
                /// of a page, against that of `relative_to`: share of ranks at which the object
                /// that arrived as the k-th came sooner after its flow's start than the k-th
                /// there; a tie counts half. That part of the cumulative distribution is ahead
                ObjectsEarlierByRank = "objects_earlier_by_rank", Fraction, More, Waiting,
                    "share of ranks at which an object comes earlier than that of relative_to" => {
                    of Flows |_| because("it needs another page to compare with");
                    against |pair, window| objects_earlier_by_rank(pair, window);
                }
                /// `Σ 8 S / Σ m` over the segments that arrived, `m = 8 S / bitrate` being a
                /// segment's media time
                VideoBitrate = "video_bitrate", BitsPerSecond, More, Waiting,
                    "mean bitrate of the segments" => {
                    of Flows |flows| flows.video_bitrate();
                    column [] "video_bitrate_bps", "video bitrate";
                    within [] Tolerance::Part(0.05);
                }
                /// media time that arrived in the quality number `quality` (the lowest is 0)
                /// over all that arrived
                VideoQualityShare(quality: u32) = "video_quality_share", Fraction, Neither,
                    Waiting, "media time in a quality over all" => {
                    of Flows |flows| flows.video_quality_share(*quality);
                }
                /// total time of stalls, without the start-up, mean over the flows
                VideoStallTime = "video_stall_time", Seconds, Less, Waiting,
                    "total time of stalls" => {
                    of Flows |flows| flows.video_stall_time();
                    column [] "video_stall_s", "video stalled for";
                }
                /// time from the flow's start until playback begins, mean over the
                /// flows
                VideoStartupTime = "video_startup_time", Seconds, Less, Waiting,
                    "time until playback starts" => {
                    of Flows |flows| flows.video_startup_time();
                    column [] "video_startup_s", "video started after";
                    within [] Tolerance::Part(0.1);
                }
                /// segments whose quality differs from that of the previous segment, mean
                /// over the flows
                VideoSwitches = "video_switches", Number, Less, Waiting,
                    "changes of quality" => {
                    of Flows |flows| flows.video_switches();
                    column [] "video_switches", "changes of quality";
                }
            }
            chapter "Mixes" {
                /// from start to the acknowledgement of the last byte, distribution over the
                /// transfers
                FlowCompletion(statistic: Statistic, sizes: SizeRange) = "flow_completion",
                    Seconds, Less, Waiting, "completion time of transfers" => {
                    of Flows |flows|
                        Ok(flows.transfers(TransferValue::Completion, *sizes)?.statistic(*statistic));
                    interval (TransferValue::Completion, *sizes, *statistic);
                    column [(Statistic::P50, SizeRange::ALL)] "transfer_completion_p50_s",
                        "completion of transfers, median";
                    column [(Statistic::P95, SizeRange::ALL)] "transfer_completion_p95_s",
                        "completion of transfers, 95th percentile";
                    within [(Statistic::Mean, SizeRange::ALL)] Tolerance::Part(0.1);
                }
                /// `8 S` over completion time, distribution over the transfers
                FlowThroughput(statistic: Statistic, sizes: SizeRange) = "flow_throughput",
                    BitsPerSecond, More, Waiting, "throughput of transfers" => {
                    of Flows |flows|
                        Ok(flows.transfers(TransferValue::Throughput, *sizes)?.statistic(*statistic));
                    interval (TransferValue::Throughput, *sizes, *statistic);
                    column [(Statistic::P5, SizeRange::ALL)] "transfer_throughput_p5_bps",
                        "throughput of transfers, 5th percentile";
                }
                /// mean distance between the completion times of transfers that follow each
                /// other, as RFC 3550 (section 6.4.1) has it for packets. Of transfers of one
                /// size; without an interval
                CompletionJitter(sizes: SizeRange) = "flow_completion_jitter", Seconds, Less,
                    Waiting, "difference between completion times of successive transfers, mean" => {
                    of Flows |flows| flows.completion_jitter(*sizes);
                }
            }
            models {
                /// the smallest of the flows' shares of the link at the end of the model
                /// of alternate probing
                "model.share_low", "the smallest share of the link";
                /// the largest of the shares
                "model.share_high", "the largest share of the link";
                /// final value of the bandwidth filters, as a fraction of the link's
                /// capacity
                "model.filter", "final value of the bandwidth filters";
                /// rounds until all shares stay within 0.001 of their final values; the
                /// median over the starts, if several are drawn
                "model.rounds_to_converge", "rounds until the shares are final";
                /// the 5th percentile of the same over the starts
                "model.rounds_to_converge_p5", "rounds until the shares are final, 5th percentile";
                /// the 95th percentile
                "model.rounds_to_converge_p95", "rounds until the shares are final, 95th percentile";
            }
        }
    };
}
