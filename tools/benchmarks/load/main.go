// Load sends one-record Produce requests and counts the answers.
//
// Each connection keeps exactly -depth requests in flight: a new one leaves only when an
// answer has come, so the broker is never asked for more than the figures say. Every
// answer's error code is looked at. The last line printed is JSON.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"sort"
	"time"
)

const (
	produceKey     = 0
	produceVersion = 3
	batchHeader    = 61
	correlationID  = 7
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// recordBatch builds a batch of format v2 that holds one record with a value of size bytes.
func recordBatch(size int) []byte {
	body := []byte{0, 0, 0, 1} // attributes, timestamp delta, offset delta, null key
	body = binary.AppendVarint(body, int64(size))
	body = append(body, make([]byte, size)...)
	body = append(body, 0) // no headers
	record := binary.AppendVarint(nil, int64(len(body)))
	record = append(record, body...)

	batch := make([]byte, batchHeader, batchHeader+len(record))
	now := uint64(time.Now().UnixMilli())
	binary.BigEndian.PutUint32(batch[8:], uint32(batchHeader-12+len(record)))
	batch[16] = 2 // magic
	binary.BigEndian.PutUint64(batch[27:], now)
	binary.BigEndian.PutUint64(batch[35:], now)
	for i := 43; i < 57; i++ { // no producer id, epoch or sequence
		batch[i] = 0xff
	}
	binary.BigEndian.PutUint32(batch[57:], 1)
	batch = append(batch, record...)
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], castagnoli))
	return batch
}

func appendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

// produceFrame builds a whole Produce v3 request.
func produceFrame(topic string, partition int, acks int, size int) []byte {
	batch := recordBatch(size)
	b := make([]byte, 4) // length, filled in at the end
	b = binary.BigEndian.AppendUint16(b, produceKey)
	b = binary.BigEndian.AppendUint16(b, produceVersion)
	b = binary.BigEndian.AppendUint32(b, correlationID)
	b = appendString(b, "load")
	b = append(b, 0xff, 0xff) // no transactional id
	b = binary.BigEndian.AppendUint16(b, uint16(int16(acks)))
	b = binary.BigEndian.AppendUint32(b, 30000)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = appendString(b, topic)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(partition))
	b = binary.BigEndian.AppendUint32(b, uint32(len(batch)))
	b = append(b, batch...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

type result struct {
	latencies []time.Duration
	errors    int
}

// drive runs one connection until the deadline, then drains what is in flight.
func drive(address string, frame []byte, errorAt int, depth int, deadline time.Time) (result, error) {
	var out result
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return out, err
	}
	defer conn.Close()
	reader := bufio.NewReaderSize(conn, 64<<10)
	answer := make([]byte, 64<<10)
	sent := make([]time.Time, 0, depth)
	for {
		for len(sent) < depth && time.Now().Before(deadline) {
			sent = append(sent, time.Now())
			if _, err := conn.Write(frame); err != nil {
				return out, err
			}
		}
		if len(sent) == 0 {
			return out, nil
		}
		if _, err := io.ReadFull(reader, answer[:4]); err != nil {
			return out, err
		}
		size := binary.BigEndian.Uint32(answer)
		if int(size) > len(answer) || int(size) < errorAt+2 {
			return out, fmt.Errorf("an answer of %d bytes", size)
		}
		if _, err := io.ReadFull(reader, answer[:size]); err != nil {
			return out, err
		}
		out.latencies = append(out.latencies, time.Since(sent[0]))
		sent = append(sent[:0], sent[1:]...)
		if binary.BigEndian.Uint16(answer[errorAt:]) != 0 {
			out.errors++
		}
	}
}

func main() {
	address := flag.String("address", "127.0.0.1:9092", "broker")
	topic := flag.String("topic", "load", "an existing topic; partition 0 is written")
	connections := flag.Int("connections", 16, "connections")
	depth := flag.Int("depth", 1, "requests in flight on each connection")
	size := flag.Int("size", 100, "bytes in a record")
	acks := flag.Int("acks", 1, "1 or -1")
	seconds := flag.Float64("seconds", 4, "how long")
	flag.Parse()

	frame := produceFrame(*topic, 0, *acks, *size)
	errorAt := 4 + 4 + 2 + len(*topic) + 4 + 4 // after correlation id, counts, name, index
	deadline := time.Now().Add(time.Duration(*seconds * float64(time.Second)))
	results := make(chan result)
	failures := make(chan error)
	began := time.Now()
	for i := 0; i < *connections; i++ {
		go func() {
			out, err := drive(*address, frame, errorAt, *depth, deadline)
			if err != nil {
				failures <- err
				return
			}
			results <- out
		}()
	}
	var all []time.Duration
	errors := 0
	for i := 0; i < *connections; i++ {
		select {
		case out := <-results:
			all = append(all, out.latencies...)
			errors += out.errors
		case err := <-failures:
			fmt.Fprintln(os.Stderr, "load:", err)
			os.Exit(1)
		}
	}
	elapsed := time.Since(began).Seconds()
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"requests": len(all),
		"errors":   errors,
		"rate":     float64(len(all)) / elapsed,
		"p50_ms":   all[len(all)/2].Seconds() * 1e3,
		"p99_ms":   all[len(all)*99/100].Seconds() * 1e3,
	})
}
