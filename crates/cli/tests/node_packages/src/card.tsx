import type { ReactNode } from "react";

export const Card = ({ title, children }: { title: string; children: ReactNode }) => (
  <section>
    <h1>{title}</h1>
    <>{children}</>
  </section>
);
