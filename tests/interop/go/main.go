// What a Go program does with a broker, through franz-go: topics, records in every
// compression, a group that grows and shrinks, offsets by timestamp, administration, transactions.
// It ends with exit code 1 and a sentence at the first thing that is not as it should be.
//
// Arguments: the bootstrap server and the name of a topic that does not exist, what runSteady takes,
// or "share" and what runShare takes.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	partitions            = 4
	recordsPerCompression = 1000
	waitMax               = 240 * time.Second
)

var compressions = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

type roundTrip struct {
	ctx            context.Context
	bootstrap      string
	topic          string
	firstTimestamp time.Time
	admin          *kadm.Client
}

func main() {
	log.SetFlags(0)
	if os.Args[1] == "share" {
		runShare(os.Args[2], os.Args[3], os.Args[4])
	}
	if len(os.Args) > 3 {
		bytesMax, err := strconv.Atoi(os.Args[5])
		must(err)
		runSteady(os.Args[1], os.Args[2], os.Args[3], os.Args[4], int32(bytesMax))
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]))
	must(err)
	defer client.Close()
	r := &roundTrip{
		ctx:            ctx,
		bootstrap:      os.Args[1],
		topic:          os.Args[2],
		firstTimestamp: time.Now().Add(-time.Hour).Truncate(time.Millisecond),
		admin:          kadm.NewClient(client),
	}
	r.createTopic()
	sent := r.produceInEveryCompression()
	r.consumeByGroup(sent)
	r.findOffsets(sent)
	r.deleteRecords()
	r.transact()
	fmt.Printf("produced and consumed %d records\n", sent)
}

func (r *roundTrip) createTopic() {
	retention := "-1"
	configs := map[string]*string{"retention.ms": &retention}
	_, err := r.admin.CreateTopic(r.ctx, 2, 1, configs, r.topic)
	must(err)
	grown, err := r.admin.CreatePartitions(r.ctx, partitions-2, r.topic)
	must(err)
	must(grown[r.topic].Err)
	described, err := r.admin.DescribeTopicConfigs(r.ctx, r.topic)
	must(err)
	for _, config := range described[0].Configs {
		if config.Key == "retention.ms" {
			check(config.MaybeValue() == "-1", "retention.ms is %s", config.MaybeValue())
		}
	}
}

// Idempotent, with acks=all, as franz-go is by default.
func (r *roundTrip) produceInEveryCompression() int {
	sent := 0
	for name, codec := range compressions {
		client, err := kgo.NewClient(
			kgo.SeedBrokers(r.bootstrap),
			kgo.ProducerBatchCompression(codec),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
		)
		must(err)
		records := make([]*kgo.Record, recordsPerCompression)
		for i := range records {
			number := strconv.Itoa(sent)
			records[i] = &kgo.Record{
				Topic:     r.topic,
				Partition: int32(sent % partitions),
				Key:       []byte("key-" + number),
				Value:     []byte(number),
				Timestamp: r.timestamp(sent),
				Headers:   []kgo.RecordHeader{{Key: "number", Value: []byte(number)}},
			}
			sent++
		}
		for _, result := range client.ProduceSync(r.ctx, records...) {
			check(result.Err == nil, "produce with %s: %v", name, result.Err)
		}
		client.Close()
	}
	return sent
}

func (r *roundTrip) timestamp(number int) time.Time {
	return r.firstTimestamp.Add(time.Duration(number) * time.Millisecond)
}

// The second member joins an old group and leaves it half way; the first reads the rest.
func (r *roundTrip) consumeByGroup(expected int) {
	read := make(map[int32][]int)
	total := 0
	group := "group-" + r.topic
	keep := func(records []*kgo.Record) {
		for _, record := range records {
			number, err := strconv.Atoi(string(record.Value))
			must(err)
			check(string(record.Key) == fmt.Sprintf("key-%d", number), "key %s", record.Key)
			check(string(record.Headers[0].Value) == string(record.Value), "header")
			check(record.Timestamp.Equal(r.timestamp(number)), "timestamp of %d", number)
			read[record.Partition] = append(read[record.Partition], number)
			total++
		}
	}
	poll := func(member *kgo.Client) {
		records := member.PollRecords(r.ctx, 100).Records()
		check(r.ctx.Err() == nil, "%d of %d records came", total, expected)
		keep(records)
		member.AllowRebalance()
	}
	first := r.member(group)
	poll(first)
	second := r.member(group)
	poll(second)
	must(second.CommitUncommittedOffsets(r.ctx))
	second.CloseAllowingRebalance()
	for total < expected {
		poll(first)
	}
	must(first.CommitUncommittedOffsets(r.ctx))
	described, err := r.admin.DescribeGroups(r.ctx, group)
	must(err)
	check(described[group].State == "Stable", "the group is %s", described[group].State)
	first.CloseAllowingRebalance()
	for partition := range partitions {
		numbers := read[int32(partition)]
		check(len(numbers) == expected/partitions, "%d records in %d", len(numbers), partition)
		for i, number := range numbers {
			check(number == i*partitions+partition, "disorder at %d", i)
		}
	}
	committed, err := r.admin.FetchOffsets(r.ctx, group)
	must(err)
	offset, _ := committed.Lookup(r.topic, 0)
	check(int(offset.At) == expected/partitions, "committed %d", offset.At)
	listed, err := r.admin.ListGroups(r.ctx)
	must(err)
	_, there := listed[group]
	check(there, "the group is not listed")
	_, err = r.admin.DeleteGroups(r.ctx, group)
	must(err)
}

func (r *roundTrip) member(group string) *kgo.Client {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(r.bootstrap),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(r.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsRevoked(func(ctx context.Context, c *kgo.Client, _ map[string][]int32) {
			must(c.CommitUncommittedOffsets(ctx))
		}),
		kgo.BlockRebalanceOnPoll(),
	)
	must(err)
	return client
}

func (r *roundTrip) findOffsets(sent int) {
	wanted := r.timestamp(10*partitions + 1)
	found, err := r.admin.ListOffsetsAfterMilli(r.ctx, wanted.UnixMilli(), r.topic)
	must(err)
	offset, _ := found.Lookup(r.topic, 1)
	check(offset.Offset == 10 && offset.Timestamp == wanted.UnixMilli(), "found %v", offset)
	ends, err := r.admin.ListEndOffsets(r.ctx, r.topic)
	must(err)
	end, _ := ends.Lookup(r.topic, 1)
	check(int(end.Offset) == sent/partitions, "the end is %d", end.Offset)
}

func (r *roundTrip) deleteRecords() {
	var below kadm.Offsets
	below.AddOffset(r.topic, 3, 7, -1)
	_, err := r.admin.DeleteRecords(r.ctx, below)
	must(err)
	starts, err := r.admin.ListStartOffsets(r.ctx, r.topic)
	must(err)
	start, _ := starts.Lookup(r.topic, 3)
	check(start.Offset == 7, "the start is %d", start.Offset)
}

func must(err error) {
	check(err == nil, "%v", err)
}

func check(holds bool, otherwise string, arguments ...any) {
	if !holds {
		log.Fatalf(otherwise, arguments...)
	}
}
