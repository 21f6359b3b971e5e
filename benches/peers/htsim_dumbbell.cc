// A dumbbell of bulk flows in htsim.
//   htsim_dumbbell FLOWS MBPS BOTTLENECK_MS ACCESS_MS QUEUE SECONDS
// NewReno without loss of its own: htsim has neither SACK nor damage. It has no headers either, so a packet is a segment and header in one.
// Prints the number of packets that left the bottleneck's queue, the processor time of the run in seconds without the set-up, and
// what arrived in Mbit/s.
#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "route.h"
#include "tcp.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <vector>

static const int WIRE_SIZE = 1040;

// A queue that counts what leaves it.
class Counted : public Queue {
public:
    using Queue::Queue;
    uint64_t departures = 0;

protected:
    void completeService() override {
        ++departures;
        Queue::completeService();
    }
};

int main(int argc, char** argv) {
    if (argc != 7) {
        std::fprintf(stderr, "usage: %s FLOWS MBPS BOTTLENECK_MS ACCESS_MS QUEUE SECONDS\n", argv[0]);
        return 2;
    }
    const uint64_t flows = std::atoi(argv[1]);
    const linkspeed_bps rate = speedFromMbps(uint64_t(std::atoi(argv[2])));
    const simtime_picosec bottleneck = timeFromMs(std::atoi(argv[3])), access = timeFromMs(std::atoi(argv[4]));
    const double seconds = std::atof(argv[6]);
    // It tells of each timeout.
    std::cout.rdbuf(nullptr);

    Packet::set_packet_size(WIRE_SIZE);
    const mem_b limit = mem_b(std::atoi(argv[5])) * WIRE_SIZE;
    EventList& events = EventList::getTheEventList();
    events.setEndtime(timeFromSec(seconds));
    TcpRtxTimerScanner timers(timeFromMs(10), events);

    Counted forward(rate, limit, events, nullptr);
    Queue backward(rate, limit, events, nullptr);
    Pipe there(bottleneck, events), back(bottleneck, events);
    auto branch = [&](Route& route) {
        route.push_back(new Queue(rate, limit, events, nullptr));
        route.push_back(new Pipe(access, events));
    };

    std::vector<TcpSink*> sinks;
    for (uint64_t i = 0; i < flows; ++i) {
        TcpSrc* source = new TcpSrc(nullptr, nullptr, events);
        TcpSink* sink = new TcpSink();
        Route *out = new Route(), *home = new Route();
        branch(*out);
        out->push_back(&forward);
        out->push_back(&there);
        branch(*out);
        out->push_back(sink);
        branch(*home);
        home->push_back(&backward);
        home->push_back(&back);
        branch(*home);
        home->push_back(source);
        timers.registerTcp(*source);
        // The same starts as ours: multiples of the golden ratio, spread over the first second.
        source->connect(*out, *home, *sink, i * 618033989 % 1000000000 * 1000);
        sinks.push_back(sink);
    }

    const std::clock_t before = std::clock();
    while (events.doNextEvent()) {
    }
    const double used = double(std::clock() - before) / CLOCKS_PER_SEC;
    double octets = 0;
    for (TcpSink* sink : sinks) {
        octets += double(sink->_cumulative_ack);
    }
    std::printf("%llu %.6f %.1f\n", (unsigned long long)forward.departures, used, octets * 8e-6 / seconds);
}
