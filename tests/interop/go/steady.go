// Producers and consumers that go as fast as the broker lets them, until they are killed.
package main

import (
	"context"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	steadyValueBytes  = 1000
	steadyCommitEvery = 100 * time.Millisecond
)

// runSteady does what its first argument says: "produce" or "consume", with the bootstrap server,
// the topic, the client's id, which is its group's, too, and the most bytes of a request behind it.
func runSteady(what string, bootstrap string, topic string, id string, bytesMax int32) {
	options := []kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.ClientID(id)}
	if what == "produce" {
		steadyProducer(topic, append(options,
			kgo.ProducerBatchMaxBytes(bytesMax),
			kgo.ProducerBatchCompression(kgo.NoCompression()),
			kgo.MaxBufferedRecords(1000),
		))
	}
	steadyConsumer(append(options,
		kgo.ConsumerGroup(id),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxBytes(bytesMax),
		kgo.FetchMaxPartitionBytes(bytesMax),
		kgo.AutoCommitInterval(steadyCommitEvery),
	))
}

func steadyProducer(topic string, options []kgo.Opt) {
	client, err := kgo.NewClient(options...)
	must(err)
	value := make([]byte, steadyValueBytes)
	for {
		record := &kgo.Record{Topic: topic, Value: value}
		client.Produce(context.Background(), record, func(_ *kgo.Record, err error) { must(err) })
	}
}

func steadyConsumer(options []kgo.Opt) {
	client, err := kgo.NewClient(options...)
	must(err)
	for {
		fetches := client.PollFetches(context.Background())
		if fetches.IsClientClosed() {
			os.Exit(1)
		}
	}
}
