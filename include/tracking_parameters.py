"""Query parameters that say where a click came from or whose visit it is, not what page was asked for.

Only names that one vendor writes on links to anybody's site, and that no site uses for its own pages. So ``ref``,
``source``, ``campaign``, ``cid``, ``id``, ``spm``, ``trk`` or ``si`` are not here, which link cleaners for browsers
take off: here two pages would become one. The names are as the vendors document them; compared with ClearURLs' global
rules (July 2025) and with mpchadwick/tracking-query-params-registry (May 2025).
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_CLICK_IDS = """
    gclid gclsrc gbraid wbraid dclid gad gad_* gaa_* srsltid gPromoCode gQT _ga _gac _gl __utm* utm_* ga_source
    ga_medium ga_campaign ga_content ga_term ga_place
    fbclid fb_action_ids fb_action_types fb_source fb_ref fb_comment_id fb_xd_fragment action_object_map action_type_map
    action_ref_map igsh igshid mibextid
    msclkid twclid __twitter_impression ttclid tt_medium tt_content li_fat_id epik ScCid rdt_cid qclid ndclid vkclid
    yclid ysclid ymclid _openstat bd_vid hmsr hmpl hmcu hmkw hmci qhclickid
    tblci dicbo obOrigUrl ob_click_id auctid vmcid syclid click_id clickid
"""
_MAILS = """
    mc_cid mc_eid mc_tc mkt_tok _hsenc _hsmi __hssc __hstc __hsfp hsCtaTracking hsa_* vero_id vero_conv _ke _kx
    ml_subscriber ml_subscriber_hash __s oly_anon_id oly_enc_id rb_clickid wickedid _bta_tid _bta_c trk_contact trk_msg
    trk_module trk_sid dm_i bsft_* iterableEmailCampaignId iterableTemplateId iterableMessageId ajs_* _bhlid vgo_ee
    elqTrackId elqTrack elqaid elqat elqak elqCampaignId elqCst elq sfmc_* et_rid et_cid _ri_ _ei_ _di_ _cldee _clde
    msdynmkt_trackingcontext msdynttrid sc_src sc_lid sc_uid sc_llid sc_eh sc_customer sms_click sms_source sms_uph
"""
_CAMPAIGNS = """
    mtm_* matomo_campaign matomo_keyword matomo_source matomo_medium matomo_content matomo_cid matomo_group
    matomo_placement pk_campaign pk_cpn pk_kwd pk_keyword pk_source pk_medium pk_content pk_cid pk_vid piwik_campaign
    piwik_kwd piwik_keyword
    s_cid s_kwcid ef_id adobe_mc adobe_mc_ref adobe_mc_sdid cm_mmc* xtor at_medium at_campaign at_campaign_type
    at_custom* at_creation at_emailtype at_link at_link_id at_link_origin at_link_type at_ptr_name at_recipient_id
    at_recipient_list at_send_date at_platform at_variant wt_mc wt_zmc wtrid WT.mc_*
    itm_source itm_medium itm_campaign itm_content itm_term hmb_source hmb_medium hmb_campaign mkwid pcrid
    redirect_log_mongo_id redirect_mongo_id sb_referer_host tw_source tw_campaign tw_adid tw_term tw_content
    nb_placement nb_expid_meta h_ad_id gdfms gdftrk gdffi _zucks_suid ceneo_spo wprov
    guccounter guce_referrer guce_referrer_sig _branch_match_id _branch_referrer
"""
_PARTNERS = """
    irclickid irgwc cjevent cjdata awc sscid ranMID ranEAID ranSiteID tduid admitad_uid zanpid wgu wgexpiry
"""
_SHOPS = """
    pr_prod_strat pr_rec_id pr_rec_pid pr_ref_pid pr_seq _pos _psq _sid _ss doing_wp_cron
"""
#: A name with ``=#`` is also used for other things: it goes only with a value that a session has.
_SESSIONS = """
    PHPSESSID JSESSIONID ASPSESSIONID* CFID CFTOKEN osCsid zenid XTCsid ___SID sid=# sessid=# sessionid=# session_id=#
"""

#: The built-in names, which the setting ``tracking_parameters`` goes on from.
TRACKING_PARAMETERS = tuple(
    name for names in (_CLICK_IDS, _MAILS, _CAMPAIGNS, _PARTNERS, _SHOPS, _SESSIONS) for name in names.split()
)

_ENTRY = re.compile(r"!?(?:\*|[^\s!*&=#]+(?:\*|=#)?)")


def _checked_entry(entry: str) -> str:
    """An entry of the setting.

    Raises:
        ValueError: if it is no name of a parameter.
    """
    if not _ENTRY.fullmatch(entry):
        raise ValueError(
            f"{entry!r} is no parameter's name; expected one such as 'partner', 'partner_*' for all that start so, "
            "or with a ! before it ('!srsltid') one that stays"
        )
    return entry


TrackingParameter = Annotated[str, AfterValidator(_checked_entry)]


def with_built_in(entries: tuple[str, ...]) -> tuple[str, ...]:
    """The built-in names and the configured entries: of those that fit a name, the last one decides."""
    return (*TRACKING_PARAMETERS, *entries)
