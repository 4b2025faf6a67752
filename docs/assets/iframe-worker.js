/* Lets the search work on pages that are opened as files, without a server.
 *
 * Browsers refuse `new Worker(...)` for file: URLs. There, a frame that is not shown runs the worker's
 * script instead: it has a global scope of its own, and messages are passed as function calls. The
 * theme would load such a script from a CDN; the name of this file tells it that there is one already.
 */
"use strict";

if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    onmessage = null;
    onerror = null;

    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      this.scope = this.frame.contentWindow;
      this.scope.postMessage = (data) => this.later(() => this.deliver(data));
      this.scope.importScripts = (...urls) => urls.forEach((each) => this.load(each));
      this.loaded = this.load(url);
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = new URL(url, location.href).href;
        script.onload = resolve;
        script.onerror = reject;
        this.frame.contentDocument.head.append(script);
      });
    }

    /* As between threads: never within the call that sends, and always a copy. */
    later(action) {
      setTimeout(() => this.frame.isConnected && action());
    }

    /* To the page. */
    deliver(data) {
      const event = new MessageEvent("message", { data: structuredClone(data) });
      this.onmessage?.(event);
      this.dispatchEvent(event);
    }

    /* To the worker, once its script is there. */
    postMessage(data) {
      const copy = this.scope.structuredClone(data);
      this.loaded.then(
        () => this.later(() => this.scope.dispatchEvent(new MessageEvent("message", { data: copy }))),
        (error) => this.onerror?.(error),
      );
    }

    terminate() {
      this.frame.remove();
    }
  };
}
