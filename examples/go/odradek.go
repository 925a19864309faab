// Package shop shows how tests in Go have a Kafka of their own.
package shop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
)

// Odradek is a Kafka for tests: `odradek serve --ephemeral --json`, and its control channel. It ends
// with the test, and with this process, however that one ends: its standard input is a pipe from
// here.
type Odradek struct {
	t                *testing.T
	BootstrapServers string `json:"bootstrap_servers"`
	Control          string `json:"control"`
}

// Object is what the control channel takes and answers.
type Object = map[string]any

// Start starts it for a test; options such as "--brokers", "3" are those of `odradek serve`.
func Start(t *testing.T, options ...string) *Odradek {
	t.Helper()
	command := exec.Command("odradek", append([]string{"serve", "--ephemeral", "--json"}, options...)...)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	must(t, err)
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() {
		must(t, input.Close()) // is enough to end it
		must(t, command.Wait())
	})
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err != nil {
		t.Fatal("odradek did not start; what it printed says why")
	}
	kafka := &Odradek{t: t}
	must(t, json.Unmarshal(line, kafka))
	return kafka
}

// Get returns what a GET answers, such as Get("/topics/orders").
func (kafka *Odradek) Get(path string) Object {
	kafka.t.Helper()
	response, err := http.Get(kafka.Control + path)
	return kafka.answer(response, err)
}

// Post returns what a POST answers, such as Post("/time/advance", Object{"hours": 2}).
func (kafka *Odradek) Post(path string, arguments Object) Object {
	kafka.t.Helper()
	body, err := json.Marshal(arguments)
	must(kafka.t, err)
	response, err := http.Post(kafka.Control+path, "application/json", bytes.NewReader(body))
	return kafka.answer(response, err)
}

func (kafka *Odradek) answer(response *http.Response, err error) Object {
	kafka.t.Helper()
	must(kafka.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(kafka.t, err)
	answer := Object{}
	must(kafka.t, json.Unmarshal(body, &answer))
	if response.StatusCode != http.StatusOK {
		kafka.t.Fatal(answer["error"])
	}
	return answer
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(fmt.Errorf("odradek: %w", err))
	}
}
