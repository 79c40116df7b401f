"""Tables that stay at their sources: an expression is cut into what each site is asked, and what is left to do here.

    parts      which expressions a site can be asked whole, and what leads to few rows of them            parts.py
    narrowed   beside few rows a part is reduced to what they meet: their keys are sent along             narrowed.py
    cut        the parts become questions, in an order in which each has what it needs                    cut.py
    together   the questions of one site as one query (M4)                                                together.py

Whatever is asked, the warehouse does the rest: joins with what was sent along are computed there once more, so that a
site may answer with more rows than were needed, never with fewer.
"""

from matview.plan.sites.cut import Ask, Cut, cut, stages
from matview.plan.sites.parts import MOST_SENT, Where, located
from matview.plan.sites.together import Question, question

__all__ = ["MOST_SENT", "Ask", "Cut", "Question", "Where", "cut", "located", "question", "stages"]
