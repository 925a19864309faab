// Random messages of franz-go's kmsg: their bytes, and what kmsg reads in them.
//
// Reads lines of "key first-version last-version" and writes, for both sides of each API, one
// line per version and seed: side, key, version, seed, the body in hex, and the values of the
// leaves in the order of the wire (see printer.go). The same seeds give the same lines.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// message is what kmsg's requests and responses share.
type message interface {
	AppendTo([]byte) []byte
	ReadFrom([]byte) error
	SetVersion(int16)
	MaxVersion() int16
	IsFlexible() bool
	Default()
}

func main() {
	seeds, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fail("how many seeds? %v", err)
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var key, first, last int16
		if _, err := fmt.Sscan(lines.Text(), &key, &first, &last); err != nil {
			fail("%q: %v", lines.Text(), err)
		}
		if kmsg.RequestForKey(key) == nil {
			continue
		}
		write(out, "request", key, first, last, seeds, func() message {
			return kmsg.RequestForKey(key).(message)
		})
		write(out, "response", key, first, last, seeds, func() message {
			return kmsg.ResponseForKey(key).(message)
		})
	}
}

func write(
	out *bufio.Writer, side string, key, first, last int16, seeds int, blank func() message,
) {
	for version := first; version <= min(last, blank().MaxVersion()); version++ {
		make := func() message {
			made := blank()
			made.Default()
			made.SetVersion(version)
			return made
		}
		shape := probe(make)
		for seed := range seeds {
			chance := rand.New(rand.NewPCG(uint64(seed), uint64(key)<<16|uint64(version)))
			body, read := randomMessage(make, chance)
			tokens := shape.tokens(reflect.ValueOf(read).Elem())
			fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%s\t%s\n",
				side, key, version, seed, hex.EncodeToString(body), strings.Join(tokens, " "))
		}
	}
}

// randomMessage gives a message's bytes, and the message that kmsg reads from them.
func randomMessage(make func() message, chance *rand.Rand) ([]byte, message) {
	made := make()
	filler{chance: chance, unknownTags: made.IsFlexible()}.fill(reflect.ValueOf(made).Elem())
	body := made.AppendTo(nil)
	read := make()
	if err := read.ReadFrom(body); err != nil {
		fail("%T does not read its own bytes: %v", made, err)
	}
	if again := read.AppendTo(nil); !bytes.Equal(again, body) {
		fail("%T writes other bytes than it read", made)
	}
	return body, read
}

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", values...)
	os.Exit(1)
}
