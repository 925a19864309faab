// How franz-go and sarama log in to a broker, by each mechanism of SASL, with the right password and
// with a wrong one. It prints a line for each: the client, the mechanism, the password, what came of it.
//
// Arguments: the bootstrap server, the authority's certificate ("" without TLS), a topic that is
// there, the user, the password.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	franz "github.com/twmb/franz-go/pkg/sasl/scram"
	"github.com/xdg-go/scram"
)

const (
	waitMax = 60 * time.Second
	done    = "produced and consumed"
	refused = "authentication failed"
)

var mechanisms = []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}

func main() {
	log.SetFlags(0)
	bootstrap, authority, topic, user, right := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	config := trusting(authority)
	for _, mechanism := range mechanisms {
		for name, password := range map[string]string{"right": right, "wrong": right + "x"} {
			report("franz-go", mechanism, name, byFranz(bootstrap, config, topic, mechanism, user, password))
			report("sarama", mechanism, name, bySarama(bootstrap, config, topic, mechanism, user, password))
		}
	}
}

func report(client, mechanism, password string, err error) {
	outcome := done
	if errors.Is(err, kerr.SaslAuthenticationFailed) || errors.Is(err, sarama.ErrSASLAuthenticationFailed) {
		outcome = refused
	} else if err != nil {
		outcome = err.Error()
	}
	fmt.Printf("%s %s %s: %s\n", client, mechanism, password, outcome)
}

func trusting(authority string) *tls.Config {
	if authority == "" {
		return nil
	}
	certificate, err := os.ReadFile(authority)
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	return &tls.Config{RootCAs: pool, ServerName: "localhost"}
}

func byFranz(bootstrap string, config *tls.Config, topic, mechanism, user, password string) error {
	var by sasl.Mechanism
	switch mechanism {
	case "PLAIN":
		by = plain.Auth{User: user, Pass: password}.AsMechanism()
	case "SCRAM-SHA-256":
		by = franz.Auth{User: user, Pass: password}.AsSha256Mechanism()
	default:
		by = franz.Auth{User: user, Pass: password}.AsSha512Mechanism()
	}
	options := []kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.SASL(by), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
	if config != nil {
		options = append(options, kgo.DialTLSConfig(config))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		return err
	}
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("franz-go")}).FirstErr(); err != nil {
		return err
	}
	fetches := client.PollFetches(ctx)
	return fetches.Err()
}

type scramClient struct {
	*scram.ClientConversation
	hash scram.HashGeneratorFcn
}

func (c *scramClient) Begin(user, password, authorization string) error {
	client, err := c.hash.NewClient(user, password, authorization)
	if err == nil {
		c.ClientConversation = client.NewConversation()
	}
	return err
}

func (c *scramClient) Step(challenge string) (string, error) {
	return c.ClientConversation.Step(challenge)
}

func bySarama(bootstrap string, tlsConfig *tls.Config, topic, mechanism, user, password string) error {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Metadata.Retry.Max = 0
	config.Producer.Return.Successes = true
	config.Net.SASL.Enable = true
	config.Net.SASL.Mechanism = sarama.SASLMechanism(mechanism)
	config.Net.SASL.User = user
	config.Net.SASL.Password = password
	if mechanism != "PLAIN" {
		hash := scram.SHA256
		if mechanism == "SCRAM-SHA-512" {
			hash = scram.SHA512
		}
		config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: hash} }
	}
	if tlsConfig != nil {
		config.Net.TLS.Enable = true
		config.Net.TLS.Config = tlsConfig
	}
	// A client hides why no broker could be reached, so the broker itself is asked first.
	broker := sarama.NewBroker(bootstrap)
	if err := broker.Open(config); err != nil {
		return err
	}
	if _, err := broker.Connected(); err != nil {
		return err
	}
	defer broker.Close()
	client, err := sarama.NewClient([]string{bootstrap}, config)
	if err != nil {
		return err
	}
	defer client.Close()
	producer, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		return err
	}
	message := &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("sarama")}
	if _, _, err := producer.SendMessage(message); err != nil {
		return err
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return err
	}
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	defer partition.Close()
	select {
	case <-partition.Messages():
		return nil
	case <-time.After(waitMax):
		return errors.New("nothing was consumed")
	}
}
