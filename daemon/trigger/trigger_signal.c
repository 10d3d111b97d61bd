/*
 * SIGUSR2 as a trigger: kill -USR2 works where no client is installed. signalfd(2) tells who sent
 * it.
 */
#include "daemon/trigger/trigger.h"

#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "daemon/base/log.h"
#include "proto/base.h"

static int trigger_on_signal(sd_event_source *source, const struct signalfd_siginfo *si,
			     void *userdata)
{
	struct trigger *t = userdata;
	struct trigger_answer answer;
	struct request q;
	int r;

	(void)source;
	request_init(&q, "signal", "SIGUSR2");
	if (si->ssi_code == SI_USER || si->ssi_code == SI_QUEUE || si->ssi_code == SI_TKILL) {
		q.pid = si->ssi_pid;
		q.uid = si->ssi_uid;
	}
	if (trigger_choose_signal(t, &q) != 0) {
		log_debug("SIGUSR2: no trigger is for that user");
		return 0;
	}
	r = trigger_fire(t, &q, &answer);
	/* That it is limited is said once, by the funnel. */
	if (r > 0 && r != TRIGGER_LIMITED)
		log_warning("SIGUSR2: no snapshot: %s", answer.why);
	return 0;
}

int trigger_add_signal(struct trigger *t, sd_event *event, sd_event_source **ret)
{
	return sd_event_add_signal(event, ret, SIGUSR2, trigger_on_signal, t);
}
