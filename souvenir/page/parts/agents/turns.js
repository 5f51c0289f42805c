import { call } from "../../api.js";
import { address, go, role, route } from "../../state.js";
import { useEffect, useRef, useState } from "../../vendor/preact-hooks.js";
import { Confirm } from "../confirm.js";
import { counted } from "../figures.js";
import { forgetAddress } from "../forget/kinds.js";
import { html } from "../html.js";
import { notify } from "../notice.js";
import { RequestState, useRequest } from "../request.js";
import { SessionMemories } from "./session-memories.js";
import { useTurns } from "./session-turns.js";
import { Turn } from "./turn.js";

/** @import { Schemas } from "../../api.js" */

const DAY = new Intl.DateTimeFormat("en", { weekday: "long", day: "numeric", month: "long", year: "numeric" });

/**
 * A session as a conversation: the turns around the one in the address, or from the first one on.
 * @param {{ agent: string, session: string }} props
 */
export function Turns({ agent, session }) {
  const { query } = route.value;
  const wanted = query.get("message");
  const path = `sessions/${encodeURIComponent(agent)}/${encodeURIComponent(session)}`;
  const asked = useRequest((signal) => call("GET", path, { signal }), [path]);
  const turns = useTurns(path, session, wanted);
  /** @type {Schemas["SessionRecord"] | null} */
  const record = asked.answer;
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const isLoaded = turns.messages.some(({ id }) => id === wanted);
  useEffect(() => place.current?.scrollIntoView({ block: "center" }), [wanted, isLoaded]);
  const first = turns.offset + 1;
  const last = turns.offset + turns.messages.length;
  const list = { show: "conversations", find: query.get("find") };
  /** Without a wanted turn, which would be shown again. */
  const unwanted = () => go("agents", { ...list, session }, { replace: true });
  let day = "";
  return html`<p><a href=${address("agents", list)}>All conversations</a></p>
    <${RequestState} error=${asked.error ?? turns.error} slow=${asked.slow || turns.slow} />
    ${
      record &&
      html`<h2><bdi>${record.title ?? session}</bdi></h2>
      <p class="faint">${counted(turns.total, "message", "messages")}${record.user ? html` with <bdi>${record.user}</bdi>` : ""}${record.ended_at ? " · ended" : ""}${turns.total > last - first + 1 ? ` · shown: ${first.toLocaleString("en")} to ${last.toLocaleString("en")}` : ""}</p>
      <${SessionMemories} agent=${agent} path=${path} />
      ${role.value !== "read-only" && html`<${DeleteSession} path=${path} record=${record} messages=${turns.total} onDeleted=${() => go("agents", list)} />`}`
    }
    ${turns.offset > 0 && html`<p class="actions"><button type="button" onClick=${turns.earlier}>Earlier</button><button type="button" onClick=${() => {
      unwanted();
      return turns.toStart();
    }}>To the beginning</button></p>`}
    ${turns.messages.map((each) => {
      const said = DAY.format(new Date(each.created_at));
      const isNew = said !== day;
      day = said;
      return html`${isNew && html`<h3 class="day" key=${`day of ${each.id}`}>${said}</h3>`}
        <${Turn} key=${each.id} agent=${agent} message=${each} place=${each.id === wanted ? place : undefined} href=${address("agents", { ...list, session, message: each.id })}
          onChanged=${turns.replace} onDeleted=${(/** @type {string} */ id) => {
            if (id === wanted) unwanted();
            turns.remove(id);
          }} />`;
    })}
    ${last < turns.total && html`<p class="actions"><button type="button" onClick=${turns.later}>Later</button><button type="button" onClick=${() => {
      unwanted();
      return turns.toEnd();
    }}>To the end</button></p>`}
    ${last >= turns.total && turns.fresh > 0 && html`<p><button type="button" onClick=${turns.later}>Show ${turns.fresh} new</button></p>`}`;
}

/** @param {{ path: string, record: Schemas["SessionRecord"], messages: number, onDeleted: () => void }} props */
function DeleteSession({ path, record, messages, onDeleted }) {
  const [asking, setAsking] = useState(false);
  const word = record.title ?? record.session_id;
  const remove = async () => {
    /** @type {Schemas["RemovedResponse"]} */
    const { removed } = await call("DELETE", path);
    notify(`The conversation is deleted, with ${counted(removed.messages, "message", "messages")} and ${counted(removed.memories, "memory", "memories")}.`);
    onDeleted();
  };
  return html`<p><button type="button" class="danger" onClick=${() => setAsking(true)}>Delete the conversation …</button>
    ${
      role.value === "admin" &&
      html` <a href=${forgetAddress("session_id", record.session_id)}>Forget it, in backups too</a>${record.user && html` · <a href=${forgetAddress("user", record.user)}>Forget <bdi>${record.user}</bdi></a>`}`
    }</p>
    ${
      asking &&
      html`<${Confirm} label="Delete the conversation" word=${word} action="Delete" onConfirm=${remove} onClose=${() => setAsking(false)}>
        <p>${counted(messages, "message goes", "messages go")}, and the memories that were learned from them. This cannot be undone.</p>
      <//>`
    }`;
}
