package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// No formatter or encoder prints a secret, however it is wrapped.
func TestSecretIsNeverPrinted(t *testing.T) {
	const text = "s3cr3t-text"
	c := Defaults()
	c.Root.Password = NewSecret(text)
	c.Cluster.Auth.SharedSecret = NewSecret(text)
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{
		fmt.Sprintf("%v %+v %#v", c, *c, c.Root), fmt.Sprintf("%s %q %x %d %#v", c.Root.Password, c.Root.Password, c.Root.Password, c.Root.Password, c.Root.Password), fmt.Sprint(&c.Root), string(encoded),
	} {
		if strings.Contains(out, text) || strings.Contains(out, fmt.Sprintf("%x", text)) {
			t.Errorf("the secret stands in %s", out)
		}
	}
	if NewSecret("").String() != "" || NewSecret("x").String() != redacted {
		t.Error("a secret prints as redacted, an absent one as nothing")
	}
}

// Nothing secret gets into a log line: neither by the name of its key, nor by its value, in either form.
func TestLogRedacts(t *testing.T) {
	const configured, other = `long "quoted" <secret> & of a cluster \ 1234`, "hunter2 plus"
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			c := Defaults()
			c.System.Logging.Format = format
			c.Cluster.Auth.SharedSecret = NewSecret(configured)
			var out bytes.Buffer
			log := NewLogger(c, "test", &out)
			log.Info("with "+configured+" inside", "plain", configured, "wrapped", fmt.Errorf("%q", configured), "secret_type", NewSecret(configured))
			log.Info("by key", "password", other, "new-password", other, "access_token", other, "shared_secret", "hunter2", "client", "go-sdk", "Password", "hunter2\nhunter2 line")
			log.With("token", other).Warn("implied")
			text := out.String()
			for _, leak := range []string{"hunter2", "plus", "quoted", "1234"} {
				if strings.Contains(text, leak) {
					t.Errorf("%q stands in the log:\n%s", leak, text)
				}
			}
			contains(t, text, redacted, "go-sdk", "by key", "implied")
			if format == "json" {
				for line := range strings.Lines(text) {
					if !json.Valid([]byte(line)) {
						t.Errorf("not JSON: %s", line)
					}
				}
			}
		})
	}
}

func TestLogLevelAndPlainLine(t *testing.T) {
	c := Defaults()
	c.System.Logging.Level = "warn"
	c.Root.Password = NewSecret("iggy")
	var out bytes.Buffer
	log := NewLogger(c, "whippet-server", &out)
	log.Info("hidden")
	log.Warn("cluster", "name", "iggy-cluster", "tokens", 3)
	if got := out.String(); strings.Contains(got, "hidden") || !strings.Contains(got, "[WARN]  whippet-server: cluster: name=iggy-cluster tokens=3") {
		t.Errorf("got %q", got)
	}
}
