package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const sharePoll = 100 * time.Millisecond

// shareMember is one member of a share group, of whose acknowledgements franz-go tells the outcome
// by partition alone.
type shareMember struct {
	name    string
	client  *kgo.Client
	leaving chan struct{}
	closed  chan struct{}
	mutex   sync.Mutex
	refused map[int32]error
}

var saying sync.Mutex

func say(format string, arguments ...any) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Printf(format+"\n", arguments...)
}

// runShare has members of one share group come and go as standard input says. What it reads, does
// with records and says is what ShareMembers.java describes.
func runShare(bootstrap string, topic string, group string) {
	members := make(map[string]*shareMember)
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		what, name, _ := strings.Cut(input.Text(), " ")
		if what == "join" {
			members[name] = joinShareGroup(name, bootstrap, topic, group)
		} else {
			close(members[name].leaving)
			<-members[name].closed
			delete(members, name)
		}
	}
	for _, member := range members {
		close(member.leaving)
		<-member.closed
	}
	os.Exit(0)
}

func joinShareGroup(name string, bootstrap string, topic string, group string) *shareMember {
	member := &shareMember{
		name:    name,
		leaving: make(chan struct{}),
		closed:  make(chan struct{}),
		refused: make(map[int32]error),
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.ShareGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
			member.mutex.Lock()
			defer member.mutex.Unlock()
			for _, result := range results {
				if result.Err != nil {
					member.refused[result.Partition] = result.Err
				}
			}
		}),
	)
	must(err)
	member.client = client
	go member.run()
	return member
}

func (m *shareMember) run() {
	defer close(m.closed)
	say("%s subscribed", m.name)
	for {
		select {
		case <-m.leaving:
			m.client.Close()
			say("%s closed", m.name)
			return
		default:
			m.round()
		}
	}
}

func (m *shareMember) round() {
	ctx, cancel := context.WithTimeout(context.Background(), sharePoll)
	fetches := m.client.PollFetches(ctx)
	cancel()
	fetches.EachError(func(_ string, _ int32, err error) {
		// That its coordinator went is told, too, and tried again by itself.
		var session *kgo.ErrGroupSession
		if !errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &session) {
			say("%s failed %v", m.name, err)
		}
	})
	records := fetches.Records()
	var renewed []*kgo.Record
	for _, record := range records {
		m.sayOf("read", record)
		value := string(record.Value)
		if strings.HasPrefix(value, "hold") && record.DeliveryCount() == 1 {
			select {}
		}
		if strings.HasPrefix(value, "renew") {
			renewed = append(renewed, record)
		}
		record.Ack(ackFor(value))
	}
	m.flush(records)
	for _, record := range renewed {
		m.sayOf("again", record)
		record.Ack(kgo.AckAccept)
	}
	m.flush(renewed)
}

func (m *shareMember) sayOf(what string, record *kgo.Record) {
	say("%s %s %d %d %d %s", m.name, what, record.Partition, record.Offset,
		record.DeliveryCount(), record.Value)
}

// Sends the acknowledgements of records, and says what became of them.
func (m *shareMember) flush(records []*kgo.Record) {
	if len(records) == 0 {
		return
	}
	must(m.client.FlushAcks(context.Background()))
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, record := range records {
		if err := m.refused[record.Partition]; err != nil {
			reason, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), " ", "-"), ":")
			say("%s refused %s %d %d", m.name, reason, record.Partition, record.Offset)
		} else {
			say("%s acknowledged %d %d", m.name, record.Partition, record.Offset)
		}
	}
	clear(m.refused)
}

func ackFor(value string) kgo.AckStatus {
	for prefix, status := range map[string]kgo.AckStatus{
		"release": kgo.AckRelease,
		"reject":  kgo.AckReject,
		"renew":   kgo.AckRenew,
	} {
		if strings.HasPrefix(value, prefix) {
			return status
		}
	}
	return kgo.AckAccept
}
