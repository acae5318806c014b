// A dumbbell for ns-3, to compare the cost of a packet there and in Knee.
//
//   sender hosts -- left router == bottleneck == right router -- receiver hosts
//
// All delay is on the bottleneck. With --hosts=0 the two routers are the hosts
// and there is no access hop, as in Knee's scenarios. Several flows may share
// a host: ns-3 searches a host's sockets and a router's routes linearly, so
// neither one host nor one host per flow is its fastest arrangement.
//
// No traces, no pcap, no flow monitor. Prints one line of CSV: payload bytes
// received in order, in packets of a full segment; user CPU seconds of
// Simulator::Run alone; events.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <sys/resource.h>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint32_t SEGMENT_BYTES = 1448;
constexpr uint16_t FIRST_PORT = 10000;

struct Options
{
    uint32_t flows = 1;
    uint32_t hosts = 0;
    double mbitPerSecond = 100.0;
    double rttMs = 60.0;
    double bufferBdp = 10.0;
    double loss = 0.0;
    double seconds = 60.0;
    uint32_t seed = 1;
    std::string controller = "Bbr";
};

Options
Parse(int argc, char* argv[])
{
    Options o;
    CommandLine line(__FILE__);
    line.AddValue("flows", "number of flows", o.flows);
    line.AddValue("hosts", "hosts on each side; 0: the routers are the hosts", o.hosts);
    line.AddValue("mbit", "rate of the bottleneck in Mbit/s", o.mbitPerSecond);
    line.AddValue("rtt", "round-trip time in ms", o.rttMs);
    line.AddValue("bdp", "buffer of the bottleneck in bandwidth-delay products", o.bufferBdp);
    line.AddValue("loss", "probability that the bottleneck loses a packet", o.loss);
    line.AddValue("seconds", "simulated time", o.seconds);
    line.AddValue("seed", "seed of the random loss", o.seed);
    line.AddValue("cc", "congestion control: the X of ns-3's TcpX", o.controller);
    line.Parse(argc, argv);
    return o;
}

double
BdpBytes(const Options& o)
{
    return o.mbitPerSecond * 1e6 / 8 * o.rttMs * 1e-3;
}

void
ConfigureTcp(const Options& o)
{
    // Four fair shares let BBR's window of two and its start-up run free; the
    // floor keeps small shares from being limited by the socket.
    const auto share = 4 * BdpBytes(o) / o.flows;
    const auto socketBytes = static_cast<uint32_t>(std::max(share, 1e6));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName("ns3::Tcp" + o.controller)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT_BYTES));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(socketBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(socketBytes));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketState::EnablePacing", BooleanValue(o.controller == "Bbr"));
}

// Removes the queue disc that assigning an address adds, so that the device's
// own drop-tail queue is the only one.
void
OnlyDropTail(NetDeviceContainer devices)
{
    TrafficControlHelper().Uninstall(devices);
}

NetDeviceContainer
Connect(Ptr<Node> a, Ptr<Node> b, const std::string& rate, Time delay, const std::string& buffer)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", TimeValue(delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(buffer));
    return link.Install(a, b);
}

void
AddLoss(Ptr<NetDevice> receiver, const Options& o)
{
    auto model = CreateObject<RateErrorModel>();
    model->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
    model->SetRate(o.loss);
    model->AssignStreams(1);
    receiver->SetAttribute("ReceiveErrorModel", PointerValue(model));
}

struct Side
{
    std::vector<Ptr<Node>> hosts;
    std::vector<Ipv4Address> addresses;
};

// Makes the hosts of one side behind `router`; with none, the router is the host.
Side
AddHosts(Ptr<Node> router, Ipv4Address routerAddress, const char* network, const Options& o)
{
    if (o.hosts == 0)
    {
        return {{router}, {routerAddress}};
    }
    Side side;
    Ipv4AddressHelper addresses(network, "255.255.255.252");
    for (uint32_t i = 0; i < o.hosts; ++i)
    {
        auto host = CreateObject<Node>();
        InternetStackHelper().Install(host);
        const auto rate = std::to_string(static_cast<uint64_t>(o.mbitPerSecond * 10)) + "Mbps";
        auto devices = Connect(host, router, rate, Time(0), "100000p");
        auto interfaces = addresses.Assign(devices);
        OnlyDropTail(devices);
        addresses.NewNetwork();
        Ipv4StaticRoutingHelper()
            .GetStaticRouting(host->GetObject<Ipv4>())
            ->SetDefaultRoute(interfaces.GetAddress(1), 1);
        side.hosts.push_back(host);
        side.addresses.push_back(interfaces.GetAddress(0));
    }
    return side;
}

void
RouteEverythingTo(Ptr<Node> router, Ipv4Address other)
{
    // Interface 0 is the loopback, 1 the bottleneck.
    Ipv4StaticRoutingHelper().GetStaticRouting(router->GetObject<Ipv4>())->SetDefaultRoute(other, 1);
}

std::vector<Ptr<PacketSink>>
AddFlows(const Side& left, const Side& right, const Options& o)
{
    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t i = 0; i < o.flows; ++i)
    {
        const auto host = i % left.hosts.size();
        const auto port = static_cast<uint16_t>(FIRST_PORT + i / left.hosts.size());
        BulkSendHelper source("ns3::TcpSocketFactory",
                              InetSocketAddress(right.addresses[host], port));
        // One segment per write, so that the socket's buffer never splits one.
        source.SetAttribute("SendSize", UintegerValue(SEGMENT_BYTES));
        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), port));
        source.Install(left.hosts[host]).Start(Seconds(0));
        auto sinkApp = sink.Install(right.hosts[host]);
        sinkApp.Start(Seconds(0));
        sinks.push_back(DynamicCast<PacketSink>(sinkApp.Get(0)));
    }
    return sinks;
}

double
UserSeconds()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec) * 1e-6;
}

} // namespace

int
main(int argc, char* argv[])
{
    const Options o = Parse(argc, argv);
    RngSeedManager::SetSeed(o.seed);
    ConfigureTcp(o);

    auto left = CreateObject<Node>();
    auto right = CreateObject<Node>();
    InternetStackHelper().Install(left);
    InternetStackHelper().Install(right);
    const auto rate = std::to_string(static_cast<uint64_t>(o.mbitPerSecond * 1e6)) + "bps";
    const auto buffer = std::to_string(static_cast<uint64_t>(o.bufferBdp * BdpBytes(o))) + "B";
    auto bottleneck = Connect(left, right, rate, MicroSeconds(o.rttMs * 500), buffer);
    auto ends = Ipv4AddressHelper("10.0.0.0", "255.255.255.252").Assign(bottleneck);
    OnlyDropTail(bottleneck);
    if (o.loss > 0)
    {
        AddLoss(bottleneck.Get(1), o);
    }
    RouteEverythingTo(left, ends.GetAddress(1));
    RouteEverythingTo(right, ends.GetAddress(0));
    const auto senders = AddHosts(left, ends.GetAddress(0), "10.1.0.0", o);
    const auto receivers = AddHosts(right, ends.GetAddress(1), "10.2.0.0", o);
    const auto sinks = AddFlows(senders, receivers, o);

    Simulator::Stop(Seconds(o.seconds));
    const double before = UserSeconds();
    Simulator::Run();
    const double user = UserSeconds() - before;

    uint64_t bytes = 0;
    for (const auto& sink : sinks)
    {
        bytes += sink->GetTotalRx();
    }
    const auto packets = bytes / SEGMENT_BYTES;
    std::printf("data_packets,user_cpu_s,packets_per_s,goodput_mbit_s,events\n");
    std::printf("%llu,%.3f,%.0f,%.3f,%llu\n",
                static_cast<unsigned long long>(packets),
                user,
                user > 0 ? static_cast<double>(packets) / user : 0.0,
                static_cast<double>(bytes) * 8e-6 / o.seconds,
                static_cast<unsigned long long>(Simulator::GetEventCount()));
    // Ends the process: tearing down 10,000 flows takes ns-3 minutes.
    std::fflush(stdout);
    std::_Exit(0);
}
