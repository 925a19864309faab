package main

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const transactionRecords = 20

// Transactions that come to either end, a copy with its offsets, and a producer that is fenced
// by its successor.
func (r *roundTrip) transact() {
	source, target := r.topic+"-source", r.topic+"-target"
	_, err := r.admin.CreateTopics(r.ctx, 2, 1, nil, source, target)
	must(err)
	first := r.transactional("zombie-" + r.topic)
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		must(first.BeginTransaction())
		r.write(first, source, fmt.Sprint(end))
		must(first.EndTransaction(r.ctx, end))
	}
	r.copy(source, target)
	r.expect(target, kgo.ReadCommitted(), 2*transactionRecords)
	r.expect(target, kgo.ReadUncommitted(), 4*transactionRecords)

	must(first.BeginTransaction())
	r.write(first, target, "of the zombie")
	successor := r.transactional("zombie-" + r.topic)
	must(successor.BeginTransaction())
	r.write(successor, target, "of its successor")
	fenced := first.EndTransaction(r.ctx, kgo.TryCommit)
	check(errors.Is(fenced, kerr.ProducerFenced) || errors.Is(fenced, kerr.InvalidProducerEpoch),
		"the zombie is told: %v", fenced)
	must(successor.EndTransaction(r.ctx, kgo.TryCommit))
	r.expect(target, kgo.ReadCommitted(), 3*transactionRecords)
	first.Close()
	successor.Close()
}

func (r *roundTrip) transactional(id string) *kgo.Client {
	client, err := kgo.NewClient(kgo.SeedBrokers(r.bootstrap), kgo.TransactionalID(id))
	must(err)
	// It is initialized with its first transaction, unless it is asked for its id.
	_, _, err = client.ProducerID(r.ctx)
	must(err)
	return client
}

func (r *roundTrip) write(client *kgo.Client, topic, text string) {
	records := make([]*kgo.Record, transactionRecords)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "%s %d", text, i)}
	}
	must(client.ProduceSync(r.ctx, records...).FirstErr())
}

// Copies the committed records, first in vain, and then again from where that began.
func (r *roundTrip) copy(source, target string) {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(r.bootstrap),
		kgo.TransactionalID("copy-"+r.topic),
		kgo.ConsumerGroup("copy-"+r.topic),
		kgo.ConsumeTopics(source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
	)
	must(err)
	for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		must(session.Begin())
		for copied := 0; copied < 2*transactionRecords; {
			for _, record := range session.PollFetches(r.ctx).Records() {
				must(r.ctx.Err())
				again := &kgo.Record{Topic: target, Value: record.Value}
				must(session.ProduceSync(r.ctx, again).FirstErr())
				copied++
			}
		}
		committed, err := session.End(r.ctx, end)
		must(err)
		check(committed == bool(end), "committed: %t", committed)
	}
	session.Close()
}

// Reads until so many records came, and finds no other one before the end.
func (r *roundTrip) expect(topic string, isolation kgo.IsolationLevel, records int) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(r.bootstrap),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(isolation),
		kgo.KeepControlRecords(),
	)
	must(err)
	ends, err := r.admin.ListEndOffsets(r.ctx, topic)
	must(err)
	found, left := 0, 0
	ends.Each(func(end kadm.ListedOffset) { left += int(min(end.Offset, 1)) })
	for left > 0 {
		for _, record := range client.PollFetches(r.ctx).Records() {
			if !record.Attrs.IsControl() {
				found++
			}
			end, _ := ends.Lookup(topic, record.Partition)
			if record.Offset+1 == end.Offset {
				left--
			}
		}
		must(r.ctx.Err())
	}
	check(found == records, "%s has %d records, not %d", topic, found, records)
	client.Close()
}
