// A dumbbell of bulk flows in ns-3.
//   ns3_dumbbell SACK FLOWS MBPS BOTTLENECK_MS ACCESS_MS QUEUE LOSS SECONDS
// Prints the number of packets that left the bottleneck's queue, and the processor time of the run in seconds without the set-up.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

using namespace ns3;

static Ptr<ErrorModel> Loss(double probability) {
    Ptr<RateErrorModel> model = CreateObject<RateErrorModel>();
    model->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
    model->SetRate(probability);
    return model;
}

int main(int argc, char** argv) {
    if (argc != 9) {
        std::fprintf(stderr, "usage: %s SACK FLOWS MBPS BOTTLENECK_MS ACCESS_MS QUEUE LOSS SECONDS\n", argv[0]);
        return 2;
    }
    const bool sack = std::atoi(argv[1]) != 0;
    const uint32_t flows = std::atoi(argv[2]);
    const std::string rate = std::string(argv[3]) + "Mbps", bottleneck = std::string(argv[4]) + "ms", access = std::string(argv[5]) + "ms";
    const std::string queue = std::string(argv[6]) + "p";
    const double loss = std::atof(argv[7]), seconds = std::atof(argv[8]);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(sack));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", StringValue("200ms"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));

    PointToPointHelper trunk, branch;
    trunk.SetDeviceAttribute("DataRate", StringValue(rate));
    trunk.SetChannelAttribute("Delay", StringValue(bottleneck));
    trunk.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(queue));
    branch.SetDeviceAttribute("DataRate", StringValue(rate));
    branch.SetChannelAttribute("Delay", StringValue(access));
    branch.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(queue));

    NodeContainer routers, left, right;
    routers.Create(2);
    left.Create(flows);
    right.Create(flows);
    InternetStackHelper stack;
    Ipv4StaticRoutingHelper routing;
    stack.SetRoutingHelper(routing);
    stack.InstallAll();
    TrafficControlHelper shaping;
    auto table = [&](Ptr<Node> node) { return routing.GetStaticRouting(node->GetObject<Ipv4>()); };

    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    NetDeviceContainer middle = trunk.Install(routers);
    Ipv4InterfaceContainer ends = addresses.Assign(middle);
    shaping.Uninstall(middle);
    table(routers.Get(0))->AddNetworkRouteTo("10.2.0.0", "255.255.0.0", ends.GetAddress(1), 1);
    table(routers.Get(1))->AddNetworkRouteTo("10.1.0.0", "255.255.0.0", ends.GetAddress(0), 1);

    Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < flows; ++i) {
        NetDeviceContainer a = branch.Install(left.Get(i), routers.Get(0));
        NetDeviceContainer b = branch.Install(routers.Get(1), right.Get(i));
        addresses.SetBase(("10.1." + std::to_string(i) + ".0").c_str(), "255.255.255.0");
        Ipv4InterfaceContainer ia = addresses.Assign(a);
        addresses.SetBase(("10.2." + std::to_string(i) + ".0").c_str(), "255.255.255.0");
        Ipv4InterfaceContainer ib = addresses.Assign(b);
        shaping.Uninstall(a);
        shaping.Uninstall(b);
        table(left.Get(i))->SetDefaultRoute(ia.GetAddress(1), 1);
        table(right.Get(i))->SetDefaultRoute(ib.GetAddress(0), 1);
        if (loss > 0) {
            b.Get(0)->SetAttribute("ReceiveErrorModel", PointerValue(Loss(loss)));
            b.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(Loss(loss)));
        }
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        sink.Install(right.Get(i)).Start(Seconds(0));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(ib.GetAddress(1), 5000));
        bulk.SetAttribute("SendSize", UintegerValue(1000));
        bulk.Install(left.Get(i)).Start(Seconds(start->GetValue(0, 1)));
    }
    Simulator::Stop(Seconds(seconds));
    const std::clock_t before = std::clock();
    Simulator::Run();
    const double seconds_used = double(std::clock() - before) / CLOCKS_PER_SEC;
    Ptr<Queue<Packet>> waiting = DynamicCast<PointToPointNetDevice>(middle.Get(0))->GetQueue();
    std::printf("%u %.6f\n", waiting->GetTotalReceivedPackets() - waiting->GetNPackets(), seconds_used);
    Simulator::Destroy();
}
