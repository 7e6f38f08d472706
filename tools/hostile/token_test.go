package hostile

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// TestW7ExpiredTokenCleaner: a token expires and the cleaner's own operation removes it, while clients
// work; nothing else happens, then or at the starts after it.
func TestW7ExpiredTokenCleaner(t *testing.T) {
	s := start(t, map[string]string{"IGGY_PERSONAL_ACCESS_TOKEN_CLEANER_INTERVAL": "1 s"})
	crowd := gather(t, s)
	c := s.connect()
	token, err := c.CreateToken("brief", uint64(2*time.Second/time.Microsecond))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateToken("lasting", 0); err != nil {
		t.Fatal(err)
	}
	withToken := func() error {
		conn, err := client.Dial(context.Background(), client.Options{Address: s.Address(), Token: token, RetryFor: -1})
		if err == nil {
			conn.Close()
		}
		return err
	}
	if err := withToken(); err != nil {
		t.Fatalf("a fresh token: %v", err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); ; <-tick.C {
		tokens, err := c.Tokens()
		if err != nil {
			t.Fatal(err)
		}
		if len(tokens) == 1 && tokens[0].Name == "lasting" {
			break
		}
		if time.Since(begun) > answerTime {
			t.Fatalf("not cleaned after %v: %v", answerTime, tokens)
		}
	}
	if err := withToken(); !errors.Is(err, wire.CodeInvalidPersonalAccessToken) {
		t.Errorf("an expired token: %v", err)
	}
	crowd.lap()
	crowd.disperse()
	for _, kill := range []bool{true, false} {
		if err := s.Restart(kill); err != nil {
			t.Fatal(err)
		}
		again := s.connect()
		if tokens, err := again.Tokens(); err != nil || len(tokens) != 1 {
			t.Errorf("%d tokens after a restart, %v", len(tokens), err)
		}
		if _, err := again.Send(stream, topic, partition(0), sealed([]byte("more"))); err != nil {
			t.Error(err)
		}
		again.Close()
	}
	crowd.verify()
}
