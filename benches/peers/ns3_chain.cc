// A chain of 802.11b stations in ns-3, 200 m from each to the next, with one bulk flow over static routes from end to end.
//   ns3_chain HOPS RTS WINDOW RUN SECONDS SENSE
// Stations decode up to 250 m away, by two-ray propagation at 914 MHz. If SENSE is 0 that is their sensitivity, so that anything
// weaker does not exist for them; if it is 1 they sense signals up to 550 m away and suffer from all. Compiled with THRESHOLD, a
// frame survives where it is 10 dB above everything else, instead of by the error rates of its modulation. Prints the number of
// segments that arrived, the processor time of the run in seconds without the set-up, and the goodput after 35 s in kbit/s.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/dsss-error-rate-model.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace ns3;

#ifdef THRESHOLD
// These take the places of the library's.
double DsssErrorRateModel::GetDsssDbpskSuccessRate(double ratio, uint64_t) { return ratio >= 10 ? 1 : 0; }
double DsssErrorRateModel::GetDsssDqpskSuccessRate(double ratio, uint64_t) { return ratio >= 10 ? 1 : 0; }
#endif

static const double WARM_UP = 35;
static const uint32_t SEGMENT = 1024;

int main(int argc, char** argv) {
    if (argc != 7) {
        std::fprintf(stderr, "usage: %s HOPS RTS WINDOW RUN SECONDS SENSE\n", argv[0]);
        return 2;
    }
    const uint32_t hops = std::atoi(argv[1]), window = std::atoi(argv[3]);
    const bool rts = std::atoi(argv[2]) != 0, sense = std::atoi(argv[6]) != 0;
    const double seconds = std::atof(argv[5]);
    RngSeedManager::SetRun(std::atoi(argv[4]) + 1);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(window));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(window));
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", StringValue("50p"));
    Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold", UintegerValue(rts ? 0 : 65535));

    NodeContainer nodes;
    nodes.Create(hops + 1);
    MobilityHelper places;
    places.SetPositionAllocator("ns3::GridPositionAllocator", "DeltaX", DoubleValue(200), "GridWidth", UintegerValue(hops + 1));
    places.Install(nodes);

    YansWifiChannelHelper air;
    air.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    air.AddPropagationLoss("ns3::TwoRayGroundPropagationLossModel", "Frequency", DoubleValue(914e6), "HeightAboveZ",
                           DoubleValue(1.5));
    YansWifiPhyHelper phy;
    phy.SetChannel(air.Create());
    phy.Set("TxPowerStart", DoubleValue(24.5));
    phy.Set("TxPowerEnd", DoubleValue(24.5));
    phy.Set("RxSensitivity", DoubleValue(sense ? -93 : -64.5));
    if (sense) {
        phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel", "Threshold", DoubleValue(10), "MinimumRssi",
                                      DoubleValue(-64.5));
    }
    phy.Set("CcaEdThreshold", DoubleValue(-78.2));
    phy.Set("CcaSensitivity", DoubleValue(-78.2));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211b);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue("DsssRate2Mbps"), "ControlMode",
                                 StringValue("DsssRate1Mbps"));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    NetDeviceContainer devices = wifi.Install(phy, mac, nodes);

    Ipv4StaticRoutingHelper routing;
    InternetStackHelper stack;
    stack.SetRoutingHelper(routing);
    stack.Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer ends = addresses.Assign(devices);
    TrafficControlHelper shaping;
    shaping.Uninstall(devices);
    for (uint32_t here = 0; here <= hops; ++here) {
        Ptr<Ipv4StaticRouting> table = routing.GetStaticRouting(nodes.Get(here)->GetObject<Ipv4>());
        for (uint32_t there = 0; there <= hops; ++there) {
            if (there != here) {
                table->AddHostRouteTo(ends.GetAddress(there), ends.GetAddress(there > here ? here + 1 : here - 1), 1);
            }
        }
    }

    PacketSinkHelper sinks("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
    ApplicationContainer receiving = sinks.Install(nodes.Get(hops));
    receiving.Start(Seconds(0));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(ends.GetAddress(hops), 5000));
    bulk.SetAttribute("SendSize", UintegerValue(SEGMENT));
    bulk.Install(nodes.Get(0)).Start(Seconds(1));

    Ptr<PacketSink> sink = DynamicCast<PacketSink>(receiving.Get(0));
    uint64_t warm = 0;
    Simulator::Schedule(Seconds(WARM_UP), [&warm, sink] { warm = sink->GetTotalRx(); });
    Simulator::Stop(Seconds(seconds));
    const std::clock_t before = std::clock();
    Simulator::Run();
    const double used = double(std::clock() - before) / CLOCKS_PER_SEC;
    const double goodput = seconds > WARM_UP ? (sink->GetTotalRx() - warm) * 8e-3 / (seconds - WARM_UP) : 0;
    std::printf("%llu %.6f %.3f\n", (unsigned long long)(sink->GetTotalRx() / SEGMENT), used, goodput);
    Simulator::Destroy();
}
