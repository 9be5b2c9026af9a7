// The width of an element, as it changes.

import { useCallback, useRef, useState } from "preact/hooks";

export function useWidth(): [(element: HTMLElement | null) => void, number] {
  const [width, setWidth] = useState(0);
  const observer = useRef<ResizeObserver | null>(null);
  const box = useCallback((element: HTMLElement | null) => {
    observer.current?.disconnect();
    if (!element) return;
    observer.current = new ResizeObserver(([entry]) => entry && setWidth(Math.floor(entry.contentRect.width)));
    observer.current.observe(element);
    setWidth(Math.floor(element.clientWidth));
  }, []);
  return [box, width];
}
