package shop

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// What tests of a program that uses Kafka can do, besides producing and consuming.

func TestAnOrderIsShipped(t *testing.T) {
	kafka, ctx := Start(t), deadline(t)
	kafka.Post("/topics", Object{"topic": "orders", "partitions": 2})
	produce(t, kafka, "orders", "a lamp")

	shipper := client(t, kafka, kgo.ConsumerGroup("shippers"), kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	fetched := shipper.PollFetches(ctx)
	must(t, fetched.Err())
	if value := string(fetched.Records()[0].Value); value != "a lamp" {
		t.Fatalf("shipped %q", value)
	}
	must(t, shipper.CommitUncommittedOffsets(ctx))
	kafka.Post("/wait", Object{"condition": "no_lag", "group": "shippers"})
}

func TestAnOrderWhoseAnswerIsLostIsThereOnce(t *testing.T) {
	kafka := Start(t)
	kafka.Post("/topics", Object{"topic": "lost"})
	fault := kafka.Post("/faults", Object{
		"fault": "lose_answer", "api": "Produce", "topic": "lost", "times": 1,
	})
	produce(t, kafka, "lost", "a chair")

	struck := kafka.Post(fmt.Sprintf("/faults/%v/wait", fault["id"]), Object{})
	if struck["strikes"] != 1.0 {
		t.Fatalf("struck %v times", struck["strikes"])
	}
	if records := kafka.Get("/topics/lost/records")["records"].([]any); len(records) != 1 {
		t.Fatalf("there are %v", records)
	}
	if count := kafka.Get("/requests?api=Produce&topic=lost")["count"]; count != 2.0 {
		t.Fatalf("it was sent %v times", count)
	}
}

func TestOrdersAreForgottenAfterAnHour(t *testing.T) {
	kafka := Start(t)
	kafka.Post("/topics", Object{"topic": "brief", "config": Object{"retention.ms": "3600000"}})
	produce(t, kafka, "brief", "a book")
	kafka.Post("/wait", Object{"condition": "records_in", "topic": "brief", "at_least": 1})
	kafka.Post("/time/advance", Object{"hours": 2})
	if records := kafka.Get("/topics/brief/records")["records"].([]any); len(records) != 0 {
		t.Fatalf("there are %v", records)
	}
}

func client(t *testing.T, kafka *Odradek, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	made, err := kgo.NewClient(append(options, kgo.SeedBrokers(strings.Split(kafka.BootstrapServers, ",")...))...)
	must(t, err)
	t.Cleanup(made.Close)
	return made
}

func produce(t *testing.T, kafka *Odradek, topic string, value string) {
	t.Helper()
	record := &kgo.Record{Topic: topic, Value: []byte(value)}
	must(t, client(t, kafka).ProduceSync(deadline(t), record).FirstErr())
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
