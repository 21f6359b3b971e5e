# A dumbbell of bulk flows in ns-2.35.
#   ns ns2_dumbbell.tcl KIND FLOWS MBPS BOTTLENECK_MS ACCESS_MS QUEUE LOSS SECONDS
# KIND is sack1 or newreno. Prints the number of packets that left the bottleneck's queue.
foreach {kind flows mbps bottleneck access queue loss seconds} $argv break
remove-all-packet-headers
add-packet-header IP TCP Flags
set ns [new Simulator]
Queue set limit_ $queue
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right ${mbps}Mb ${bottleneck}ms DropTail
set watch [$ns monitor-queue $left $right ""]

proc lossy {ns from to loss} {
    if {$loss <= 0} return
    set draw [new RandomVariable/Uniform]
    $draw use-rng [new RNG]
    set module [new ErrorModel]
    $module unit pkt
    $module set rate_ $loss
    $module ranvar $draw
    $module drop-target [new Agent/Null]
    $ns link-lossmodel $module $from $to
}

set starts [new RandomVariable/Uniform]
for {set i 0} {$i < $flows} {incr i} {
    set a [$ns node]
    set b [$ns node]
    $ns duplex-link $a $left ${mbps}Mb ${access}ms DropTail
    $ns duplex-link $right $b ${mbps}Mb ${access}ms DropTail
    lossy $ns $right $b $loss
    lossy $ns $b $right $loss
    if {$kind == "sack1"} {
        set sender [new Agent/TCP/Sack1]
        set sink [new Agent/TCPSink/Sack1]
    } else {
        set sender [new Agent/TCP/Newreno]
        set sink [new Agent/TCPSink]
    }
    $sender set packetSize_ 1000
    $sender set window_ 10000
    $ns attach-agent $a $sender
    $ns attach-agent $b $sink
    $ns connect $sender $sink
    set bulk [new Application/FTP]
    $bulk attach-agent $sender
    $ns at [$starts value] "$bulk start"
}
$ns at $seconds {
    puts [$watch set pdepartures_]
    exit 0
}
$ns run
