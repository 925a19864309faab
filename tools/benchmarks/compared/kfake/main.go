// Kfake runs franz-go's fake cluster, a broker on each port, until it is ended.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	list := flag.String("ports", "0", "the port of each broker, with commas between")
	flag.Parse()
	var ports []int
	for _, text := range strings.Split(*list, ",") {
		port, err := strconv.Atoi(text)
		if err != nil {
			fmt.Fprintln(os.Stderr, "kfake: not a port:", text)
			os.Exit(1)
		}
		ports = append(ports, port)
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(len(ports)),
		kfake.Ports(ports...),
		kfake.AllowAutoTopicCreation(),
		kfake.DefaultNumPartitions(1),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kfake:", err)
		os.Exit(1)
	}
	fmt.Println("ready at", strings.Join(cluster.ListenAddrs(), ","))
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	<-ended
	cluster.Close()
}
