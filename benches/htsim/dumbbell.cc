// TCP NewReno flows over one bottleneck, in htsim.
//
//     dumbbell FLOWS MBIT RTT_MS SECONDS
//
// Packets of 1500 bytes, a buffer of one bandwidth-delay product, an ACK for each packet, no logs.
// Prints the data packets delivered in order, and the user CPU seconds of the simulation without
// set-up.

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "route.h"
#include "tcp.h"

namespace {

constexpr int kPacketBytes = 1500;

double UserSeconds() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_utime.tv_usec / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fprintf(stderr, "usage: dumbbell FLOWS MBIT RTT_MS SECONDS\n");
        return 2;
    }
    const int flows = std::atoi(argv[1]);
    const double mbit = std::atof(argv[2]), rtt_ms = std::atof(argv[3]);
    const double seconds = std::atof(argv[4]);

    // TcpSrc reports each timeout there.
    std::cout.rdbuf(nullptr);
    EventList events;
    events.setEndtime(timeFromSec(seconds));
    Packet::set_packet_size(kPacketBytes);
    const mem_b buffer = static_cast<mem_b>(mbit * 1e6 / 8 * rtt_ms / 1e3);
    Queue bottleneck(speedFromMbps(mbit), buffer, events, nullptr);
    Pipe forth(timeFromMs(rtt_ms / 2), events), back(timeFromMs(rtt_ms / 2), events);
    TcpRtxTimerScanner timers(timeFromMs(10.0), events);

    // They live until the process ends, as the packets that refer to them do.
    std::vector<TcpSink*> sinks;
    for (int flow = 0; flow < flows; ++flow) {
        auto* source = new TcpSrc(nullptr, nullptr, events);
        auto* sink = new TcpSink();
        timers.registerTcp(*source);
        auto* there = new Route();
        there->push_back(&bottleneck);
        there->push_back(&forth);
        there->push_back(sink);
        auto* home = new Route();
        home->push_back(&back);
        home->push_back(source);
        source->connect(*there, *home, *sink, 0);
        sinks.push_back(sink);
    }

    const double begin = UserSeconds();
    while (events.doNextEvent()) {
    }
    const double took = UserSeconds() - begin;
    unsigned long long packets = 0;
    for (TcpSink* sink : sinks) {
        packets += sink->_cumulative_ack / kPacketBytes;
    }
    std::printf("%llu %.6f\n", packets, took);
}
