// How franz-go and sarama log in to a broker, in each way of a plan. It prints a line for each: the
// client, the name of the login, what came of it.
//
// Argument: a file with the plan, as tests/support/logins.py writes it.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/kerberos"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	franz "github.com/twmb/franz-go/pkg/sasl/scram"
	"github.com/xdg-go/scram"
)

const (
	waitMax = 60 * time.Second
	done    = "produced and consumed"
	refused = "authentication failed"
)

type plan struct {
	Bootstrap string
	Authority string // its certificate; "" without TLS
	Topic     string
	Logins    []login
}

// Who logs in, and how; what a mechanism has no use for is empty.
type login struct {
	Name          string
	Mechanism     string // "" where a certificate says who it is
	User          string
	Password      string
	IsToken       bool   `json:"is_token"`
	AccessToken   string `json:"access_token"`
	Certificate   string
	Key           string
	Configuration string // of Kerberos
	Keytab        string
	Realm         string
	Service       string
}

func main() {
	log.SetFlags(0)
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var made plan
	if err := json.Unmarshal(text, &made); err != nil {
		log.Fatal(err)
	}
	for _, each := range made.Logins {
		report("franz-go", each, byFranz(made, each))
		report("sarama", each, bySarama(made, each))
	}
}

func report(client string, by login, err error) {
	outcome := done
	if errors.Is(err, kerr.SaslAuthenticationFailed) || errors.Is(err, sarama.ErrSASLAuthenticationFailed) {
		outcome = refused
	} else if err != nil && strings.Contains(err.Error(), "remote error: tls: unknown certificate authority") {
		outcome = refused
	} else if err != nil {
		outcome = err.Error()
	}
	fmt.Printf("%s %s: %s\n", client, by.Name, outcome)
}

// The TLS of a login; nil without.
func (by login) tls(authority string) *tls.Config {
	if authority == "" {
		return nil
	}
	certificate, err := os.ReadFile(authority)
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	made := &tls.Config{RootCAs: pool, ServerName: "localhost"}
	if by.Certificate != "" {
		own, err := tls.LoadX509KeyPair(by.Certificate, by.Key)
		if err != nil {
			log.Fatal(err)
		}
		made.Certificates = []tls.Certificate{own}
	}
	return made
}

func (by login) franz() sasl.Mechanism {
	password := franz.Auth{User: by.User, Pass: by.Password, IsToken: by.IsToken}
	switch by.Mechanism {
	case "PLAIN":
		return plain.Auth{User: by.User, Pass: by.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return password.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return password.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Auth{Token: by.AccessToken}.AsMechanism()
	default:
		return kerberos.Auth{Client: by.kerberos(), Service: by.Service}.AsMechanism()
	}
}

func (by login) kerberos() *client.Client {
	known, err := config.Load(by.Configuration)
	if err != nil {
		log.Fatal(err)
	}
	keys, err := keytab.Load(by.Keytab)
	if err != nil {
		log.Fatal(err)
	}
	return client.NewWithKeytab(by.User, by.Realm, keys, known)
}

func byFranz(made plan, by login) error {
	options := []kgo.Opt{kgo.SeedBrokers(made.Bootstrap), kgo.ConsumeTopics(made.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
	if by.Mechanism != "" {
		options = append(options, kgo.SASL(by.franz()))
	}
	if config := by.tls(made.Authority); config != nil {
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
	record := &kgo.Record{Topic: made.Topic, Value: []byte("franz-go")}
	if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
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

type accessToken string

func (t accessToken) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(t)}, nil
}

func (by login) sarama(authority string) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Metadata.Retry.Max = 0
	config.Producer.Return.Successes = true
	if by.Mechanism != "" {
		config.Net.SASL.Enable = true
		config.Net.SASL.Mechanism = sarama.SASLMechanism(by.Mechanism)
		config.Net.SASL.User = by.User
		config.Net.SASL.Password = by.Password
		config.Net.SASL.TokenProvider = accessToken(by.AccessToken)
		config.Net.SASL.GSSAPI = sarama.GSSAPIConfig{
			AuthType:           sarama.KRB5_KEYTAB_AUTH,
			KerberosConfigPath: by.Configuration,
			KeyTabPath:         by.Keytab,
			Username:           by.User,
			Realm:              by.Realm,
			ServiceName:        by.Service,
		}
		hash := scram.SHA256
		if by.Mechanism == "SCRAM-SHA-512" {
			hash = scram.SHA512
		}
		config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: hash} }
	}
	if secure := by.tls(authority); secure != nil {
		config.Net.TLS.Enable = true
		config.Net.TLS.Config = secure
	}
	return config
}

func bySarama(made plan, by login) error {
	config := by.sarama(made.Authority)
	// A client hides why no broker could be reached, so the broker itself is asked first.
	broker := sarama.NewBroker(made.Bootstrap)
	if err := broker.Open(config); err != nil {
		return err
	}
	if _, err := broker.Connected(); err != nil {
		return err
	}
	defer broker.Close()
	client, err := sarama.NewClient([]string{made.Bootstrap}, config)
	if err != nil {
		return err
	}
	defer client.Close()
	producer, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		return err
	}
	message := &sarama.ProducerMessage{Topic: made.Topic, Value: sarama.StringEncoder("sarama")}
	if _, _, err := producer.SendMessage(message); err != nil {
		return err
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return err
	}
	partition, err := consumer.ConsumePartition(made.Topic, 0, sarama.OffsetOldest)
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
